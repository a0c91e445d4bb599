// A what-if panel without a kernel: every picture was drawn when the notebook was built (`without_kernel.py`).
(() => {
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const start = async (panel) => {
    panel.dataset.started = "";
    const { controls, places, width, left_out } = JSON.parse(panel.dataset.panel);
    const packed = Uint8Array.from(atob(panel.dataset.pictures), (letter) => letter.charCodeAt(0));
    const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const [lines, pictures] = JSON.parse(await new Response(inflated).text());
    // A picture is a list of line numbers, each relative to the one before.
    const svg = (picture) => {
      let line = -1;
      return picture.map((step) => lines[(line += step)]).join("\n");
    };
    const chosen = controls.map((control) => control.start);
    const image = make("img", { style: `width:${width}px;max-width:100%;background:#fff;border-radius:4px` });
    const said = make("div", { ariaLive: "polite" });
    const updates = [];
    const show = () => {
      const place = controls.reduce((sum, control, n) => sum * control.texts.length + chosen[n], 0);
      const words = controls.map((control, n) => control.name + control.sign + control.texts[chosen[n]]).join(", ");
      image.src = "data:image/svg+xml," + encodeURIComponent(svg(pictures[places[place]]));
      image.alt = words;
      said.textContent = words;
      updates.forEach((update) => update());
    };
    const choose = (n, value) => {
      chosen[n] = Math.min(Math.max(value, 0), controls[n].texts.length - 1);
      show();
    };
    const parts = controls.map(({ name, texts, kind }, n) => {
      if (kind === "list") {
        const list = make("select", { onchange: () => choose(n, list.selectedIndex) });
        list.append(...texts.map((text) => make("option", { textContent: text })));
        list.selectedIndex = chosen[n];
        return make("label", { style: "display:inline-block;margin-right:1.5em" }, name + " ", list);
      }
      const range = make("input", { type: "range", min: 0, max: texts.length - 1, value: chosen[n] });
      range.oninput = () => choose(n, +range.value);
      const value = make("output");
      const label = make("label", { style: "display:inline-block;margin-right:1.5em" }, name + " ", range, " ", value);
      updates.push(() => {
        range.value = chosen[n];
        range.ariaValueText = value.textContent = texts[chosen[n]];
      });
      if (kind !== "steps") return label;
      const button = (words, by) => {
        const onclick = () => choose(n, chosen[n] + by);
        const pressed = make("button", { type: "button", textContent: words, onclick });
        updates.push(() => (pressed.disabled = !texts[chosen[n] + by]));
        return pressed;
      };
      return make("div", {}, button("◀ back", -1), " ", button("forward ▶", 1), " ", label);
    });
    show();
    // The panel moves behind its static picture, the last one before it. That is printed in place of the panel.
    const precedes = (other) => panel.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_PRECEDING;
    const picture = [...document.images].filter(precedes).pop();
    picture?.classList.add("minidl-static");
    panel.style.font = getComputedStyle(panel).font; // that of text outputs
    (picture?.closest("a") ?? picture)?.after(panel);
    panel.append(
      make("style", {
        textContent: "@media screen{.minidl-static{display:none!important}}@media print{.minidl-panel{display:none}}",
      }),
      ...parts, said, image, make("small", { textContent: left_out, style: "display:block" }),
    );
  };
  document.querySelectorAll(".minidl-panel:not([data-started])").forEach(start);
})();
