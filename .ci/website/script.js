
// The theme: the system's, or the reader's choice, which the browser keeps if it may.
const kept = {
  read() { try { return localStorage.getItem("theme") || ""; } catch { return ""; } },
  write(theme) { try { localStorage.setItem("theme", theme); } catch { /* only for this page */ } },
};
const root = document.documentElement;
const show = (theme) => { if (theme) root.dataset.theme = theme; else delete root.dataset.theme; };
show(kept.read());

// Without a font for emoji, all markers would look the same. Then the style draws them.
document.fonts.load("1em emoji-of-the-system").catch(() => []).then((found) => {
  root.classList.toggle("no-emoji", found.length === 0);
});

addEventListener("DOMContentLoaded", () => {
  const theme = document.getElementById("theme");
  theme.value = kept.read();
  theme.closest("label").hidden = false;
  theme.addEventListener("change", () => { show(theme.value); kept.write(theme.value); });

  for (const picture of document.querySelectorAll(".moving")) {
    const button = document.createElement("button");
    const label = (moves) => { button.textContent = moves ? "Stop the picture" : "Play the picture"; };
    label(true);
    button.addEventListener("click", () => {
      for (const image of picture.querySelectorAll("img")) {
        const [path, still] = image.getAttribute("src").split("#");
        image.setAttribute("src", still ? path : `${path}#still`);
        label(Boolean(still));
      }
    });
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) picture.after(button);
  }

  const filter = document.getElementById("filter");
  if (!filter) return;
  const rows = [...document.querySelectorAll("section.letter li")];
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    let found = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      if (!row.hidden) found += 1;
    }
    for (const part of document.querySelectorAll("section.letter")) {
      part.hidden = !part.querySelector("li:not([hidden])");
    }
    document.getElementById("found").textContent = filter.value ? `${found} found` : "";
  };
  filter.closest("p").hidden = false;
  filter.addEventListener("input", apply);
  apply();
});
