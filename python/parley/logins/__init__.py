"""What sign-ins at servers and providers share: the browser's way back, and the kept logins."""
