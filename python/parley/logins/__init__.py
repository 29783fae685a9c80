"""The parts that sign-ins at servers and providers share: the browser's return, and the stored
logins."""
