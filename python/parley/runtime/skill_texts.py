"""The port through which a model reads skills."""

from __future__ import annotations

import asyncio

from parley.storage.skill_folders import SkillFolders


class SkillTexts:
    """Reads files of skills in a thread, because a disk may be slow."""

    def __init__(self, folders: SkillFolders) -> None:
        self._folders = folders

    async def read(self, name: str, path: str) -> str:
        """The text of a file in a skill's folder; "" means its instructions. Raises ParleyError."""
        text = self._folders.find(name, path)
        return self._folders.checked(text, await asyncio.to_thread(text.read))
