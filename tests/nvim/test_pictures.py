"""Pictures in the buffer: the chat's own pictures, if a plugin draws them, and only those that the
window needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.chat.attachments import link
from parley.chat.transcript import Attachment
from tests.nvim.harness import Child
from tests.pictures import PDF, beside, png, question

# Stand-ins for plugins that are not available here. Each has the part of the documented interface
# that Parley uses, checks its arguments, and draws the file's name in two lines below the row.

COMMON = """
_G.pictures = {}
local ns = vim.api.nvim_create_namespace('pictures')
local function put(buf, row, file)
  assert(vim.uv.fs_stat(file).type == 'file' and vim.startswith(file, '/'), file)
  local text = ('[picture %s]'):format(vim.fs.basename(file):sub(1, 6))
  local lines = { { { text } }, { { '[end]' } } }
  local id = vim.api.nvim_buf_set_extmark(buf, ns, row, 0, { virt_lines = lines })
  _G.pictures[id] = file
  return function()
    assert(_G.pictures[id], 'taken away twice')
    _G.pictures[id] = nil
    pcall(vim.api.nvim_buf_del_extmark, buf, ns, id)
  end
end
"""
IMAGE = f"""
{COMMON}
local images = {{}}
package.preload.image = function()
  return {{
    from_file = function(path, opts)
      if _G.no_setup then error('image.nvim is not setup. Call setup() first.') end
      assert(vim.api.nvim_win_get_buf(opts.window) == opts.buffer)
      assert(opts.with_virtual_padding and opts.x == 0)
      local image = {{ window = opts.window, buffer = opts.buffer, geometry = {{ x = opts.x, y = opts.y }} }}
      function image:render()
        table.insert(images, image)
        self.off = put(self.buffer, self.geometry.y, path)
      end
      function image:clear()
        images = vim.tbl_filter(function(other) return other ~= image end, images)
        self.off()
      end
      return image
    end,
    get_images = function(opts)
      return vim.tbl_filter(function(image)
        return image.window == opts.window and image.buffer == opts.buffer
      end, images)
    end,
  }}
end
"""
SNACKS = f"""
{COMMON}
package.preload.snacks = function()
  return {{
    config = {{ image = {{ enabled = true }} }},
    image = {{
      supports_terminal = function() return true end,
      terminal = {{ env = function() return {{ placeholders = not _G.no_placeholders }} end }},
      placement = {{
        new = function(buf, src, opts)
          assert(opts.inline == true, 'it would take the place of the text')
          local off = put(buf, opts.pos[1] - 1, src)
          return {{ close = function() off() end }}
        end,
      }},
    }},
  }}
end
"""
NONE = """
for name in pairs({ image = 1, snacks = 1 }) do package.preload[name], package.loaded[name] = nil, nil end
_G.no_setup, _G.no_placeholders, _G.pictures = nil, nil, nil
require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })
"""
BOTH = pytest.mark.parametrize("plugin", [IMAGE, SNACKS], ids=["image.nvim", "snacks"])


@pytest.fixture(autouse=True)
def without_plugins(nvim: Child) -> Iterator[None]:
    yield
    nvim.clear()
    assert nvim.lua("return vim.tbl_count(_G.pictures or {})") == 0
    nvim.lua(NONE)


def name(picture: Attachment) -> str:
    return f"[picture {picture.path.rpartition('/')[2][:6]}]"


def drawn(nvim: Child) -> list[str]:
    """The names of the drawn pictures, in any order."""
    files: dict[str, str] = nvim.lua("return vim.tbl_values(_G.pictures or {})") or {}
    return sorted(f"[picture {Path(file).name[:6]}]" for file in files)


def at_rest(nvim: Child) -> None:
    """Return when the host has read the current text."""
    seen = "require('parley.view').tick(vim.api.nvim_get_current_buf())"
    nvim.until(lambda: nvim.lua(f"return {seen} == vim.b.changedtick"), "a look at the text")


@BOTH
def test_a_questions_picture_is_drawn_below_its_line(nvim: Child, home: Path, plugin: str) -> None:
    nvim.lua(plugin)
    picture = beside(home / "one.md", png(1))
    nvim.edit("one.md", question(picture))
    nvim.until_screen(name(picture))
    rows = [row for row in nvim.screen().split("\n") if row]
    assert rows[1].startswith("![image/png")
    # the line may wrap
    assert rows[2:4] == [name(picture), "[end]"] or rows[3:5] == [
        name(picture),
        "[end]",
    ]
    assert not nvim.lua("return vim.bo.modified")


RESULT = """💬: q

🤖:[Demo]

❓:[ya] `{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}`

🛠️: [f][c] {link}

`here`

That was it.

💬: """


@BOTH
def test_a_results_picture_is_visible_while_its_call_is_folded(
    nvim: Child, home: Path, plugin: str
) -> None:
    nvim.lua(plugin)
    picture = beside(home / "result.md", png(2))
    nvim.edit("result.md", RESULT.format(link=link(picture)))
    nvim.until_screen(name(picture))
    rows = [row.strip() for row in nvim.screen().split("\n")]
    at = rows.index(name(picture))
    assert rows[at - 2].startswith("🛠 f()")
    assert rows[at - 1 : at + 4] == ["", name(picture), "[end]", "That was it.", ""]


@BOTH
def test_a_picture_disappears_and_returns_with_its_line(
    nvim: Child, home: Path, plugin: str
) -> None:
    nvim.lua(plugin)
    first, second = beside(home / "gone.md", png(3)), beside(home / "gone.md", png(4))
    nvim.edit("gone.md", question(first, second))
    nvim.until(lambda: drawn(nvim) == sorted([name(first), name(second)]), "both")
    nvim.command("3delete")
    nvim.until(lambda: drawn(nvim) == [name(second)], "the other one")
    nvim.until(lambda: name(first) not in nvim.screen(), "the screen")
    nvim.keys("u")
    nvim.until(lambda: drawn(nvim) == sorted([name(first), name(second)]), "both")
    nvim.keys("ggOabove<Esc>")
    at_rest(nvim)
    nvim.until(lambda: drawn(nvim) == sorted([name(first), name(second)]), "both")

    def are_shown() -> bool:
        rows = nvim.screen().split("\n")
        return name(first) in rows and rows.count("[end]") == 2

    nvim.until(are_shown, "both on the screen")


HOSTILE = {
    "a URL": lambda home: "![image/png 1 kB](https://example.com/x.png)",
    "another path": lambda home: f"![image/png 1 kB]({home}/there.png)",
    "a path above": lambda home: f"![image/png 1 kB](../{home.name}/there.png)",
}


@BOTH
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_other_link_is_drawn(nvim: Child, home: Path, plugin: str, text: Any) -> None:
    nvim.lua(plugin)
    (home / "there.png").write_bytes(png(5))
    picture = beside(home / "links.md", png(6))
    nvim.edit("links.md", f"💬: q\n\n{text(home)}\n\n{link(picture)}\n\n🤖:\n\n{link(picture)}\n")
    nvim.until(lambda: drawn(nvim) == [name(picture)], "the chat's own")
    at_rest(nvim)
    assert drawn(nvim) == [name(picture)]


def spoil_digest(path: Path) -> None:
    path.write_bytes(png(99))


def spoil_link(path: Path) -> None:
    path.rename(path.parent.parent / "real.png")
    path.symlink_to(path.parent.parent / "real.png")


def spoil_hard(path: Path) -> None:
    (path.parent.parent / "hard.png").unlink(missing_ok=True)
    (path.parent.parent / "hard.png").hardlink_to(path)


def spoil_folder(path: Path) -> None:
    shutil.move(path.parent, path.parent.parent / f"real-{path.parent.name}")
    path.parent.symlink_to(path.parent.parent / f"real-{path.parent.name}")


@BOTH
@pytest.mark.parametrize("spoil", [spoil_digest, spoil_link, spoil_hard, spoil_folder, Path.unlink])
def test_a_file_that_is_not_read_is_not_drawn(
    nvim: Child, home: Path, plugin: str, spoil: Any
) -> None:
    nvim.lua(plugin)
    stem = f"{getattr(spoil, '__name__', 'gone')}-{'s' if plugin is SNACKS else 'i'}"
    good, bad = beside(home / "good.md", png(7)), beside(home / f"{stem}.md", png(8))
    spoil(home / bad.path)
    nvim.edit(f"{stem}.md", question(bad, good))
    nvim.until(lambda: drawn(nvim) == [name(good)], "the good one")
    at_rest(nvim)
    assert drawn(nvim) == [name(good)]


def test_a_path_that_a_program_could_misread_is_not_drawn(nvim: Child, home: Path) -> None:
    nvim.lua(SNACKS)
    odd, good = beside(home / "a$(b);[0].md", png(9)), beside(home / "plain é.md", png(9))
    pdf = beside(home / "plain é.md", PDF, "pdf")
    nvim.edit("odd.md", question(odd, pdf, good))
    nvim.until(lambda: drawn(nvim) == [name(good)], "the plain one")


@BOTH
def test_a_long_chat_has_only_its_windows_pictures(nvim: Child, home: Path, plugin: str) -> None:
    nvim.lua(plugin)
    pictures = [beside(home / "long.md", png(100 + n)) for n in range(40)]
    crowd = "\n\n".join(link(picture) for picture in pictures[:12])
    rest = "\n".join(f"{link(picture)}\n" + "text\n" * 20 for picture in pictures[12:])
    nvim.edit("long.md", f"💬: q\n\n{crowd}\n\n{rest}")
    nvim.until(lambda: len(drawn(nvim)) == 8, "the first ones")
    nvim.command("normal! G")
    nvim.until(lambda: 0 < len(drawn(nvim)) < 4, "the last ones")
    assert name(pictures[-1]) in drawn(nvim)
    assert name(pictures[0]) not in drawn(nvim)
    nvim.command("normal! gg")
    nvim.until(lambda: name(pictures[0]) in drawn(nvim), "the first ones")


@BOTH
def test_hidden_text_has_no_picture(nvim: Child, home: Path, plugin: str) -> None:
    nvim.lua(plugin)
    nvim.command("set hidden")
    picture = beside(home / "hidden.md", png(10))
    nvim.edit("hidden.md", question(picture))
    nvim.until_screen(name(picture))
    nvim.command("enew")
    nvim.until(lambda: drawn(nvim) == [], "no picture")
    nvim.command("buffer hidden.md")
    nvim.until_screen(name(picture))


def test_a_chat_in_two_windows_has_the_picture_in_both(nvim: Child, home: Path) -> None:
    nvim.lua(IMAGE)
    picture = beside(home / "two.md", png(11))
    nvim.edit("two.md", question(picture))
    nvim.command("vsplit")
    nvim.until(lambda: drawn(nvim) == [name(picture)] * 2, "both")
    nvim.command("close")
    nvim.command("normal! G")
    nvim.until(lambda: drawn(nvim) == [name(picture)], "one")


def test_a_picture_that_snacks_draws_is_not_drawn_twice(nvim: Child, home: Path) -> None:
    nvim.lua(SNACKS)
    nvim.command("autocmd BufReadPost own.md let b:snacks_image_attached = v:true")
    seen, result = beside(home / "own.md", png(12)), beside(home / "own.md", png(13))
    nvim.edit("own.md", question(seen) + RESULT.format(link=link(result)))
    nvim.until(lambda: drawn(nvim) == [name(result)], "that of the result")


@pytest.mark.parametrize(
    "settings", ["pictures = 'off'", "pictures = 'image.nvim'"], ids=["off", "another plugin"]
)
def test_a_setting_chooses_the_drawing_plugin(nvim: Child, home: Path, settings: str) -> None:
    nvim.lua(SNACKS)
    nvim.lua(f"require('parley').setup({{ {settings} }})")
    nvim.edit("set.md", question(beside(home / "set.md", png(14))))
    at_rest(nvim)
    assert drawn(nvim) == []


def test_a_terminal_without_inline_pictures_gets_none(nvim: Child, home: Path) -> None:
    nvim.lua(SNACKS)
    nvim.lua("_G.no_placeholders = true")
    nvim.edit("terminal.md", question(beside(home / "terminal.md", png(15))))
    at_rest(nvim)
    assert drawn(nvim) == []


def test_a_failing_plugin_is_named_once(nvim: Child, home: Path) -> None:
    nvim.lua(f"{IMAGE}\n_G.no_setup = true")
    pictures = [beside(home / "fails.md", png(n)) for n in (16, 17)]
    nvim.edit("fails.md", question(*pictures))
    nvim.until(lambda: "cannot draw a picture" in nvim.messages(), "the reason")
    at_rest(nvim)
    reason = (
        "Parley: image.nvim cannot draw a picture: image.nvim is not setup. Call setup() first."
    )
    assert [line for line in nvim.messages().split("\n") if "draw" in line] == [reason]
