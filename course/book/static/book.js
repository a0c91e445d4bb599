// The results of a guess stay folded up until the guess is made (`guess.js` then says it), or the reader unfolds them.
const parts = [...document.querySelectorAll(".minidl-guess, details.result")];
for (const [place, result] of parts.entries()) {
  if (!result.matches("details")) continue;
  const guess = parts.slice(0, place).findLast((part) => !part.matches("details"));
  const show = () => (result.open ||= guess.textContent.includes("Your guess"));
  result.open = false;
  show();
  new MutationObserver(show).observe(guess, { childList: true, subtree: true });
}
// On a telephone a tap makes a picture large enough to read its letters, and then the page's width again.
document.addEventListener("click", ({ target }) => target.matches("article img") && target.classList.toggle("large"));
// On a telephone printed text is wrapped, unless it is drawn or has columns: wide spaces in two lines, where those
// before a comment and behind the dots of an example's further lines do not count.
for (const text of document.querySelectorAll(":is(.highlight-none, .highlight-text, .doctest) pre")) {
  const columns = text.textContent.split("\n").filter((line) => /[^.\s] {2,}[^\s#]/.test(line));
  text.classList.toggle("columns", columns.length > 1 || /[\u2500-\u259f]/.test(text.textContent));
}
// A formula that stands alone may take several lines: they end at wide spaces or, if need be, before relations.
for (const row of document.querySelectorAll(".formula > math > mrow")) {
  const parts = [[[]]];
  for (const sign of [...row.children]) {
    if (sign.matches("mspace:is([width='1em'], [width='2em'])")) parts.push([[]]);
    else if (sign.matches("mo") && /^[=<≤≥≈←⟹⟺]$/.test(sign.textContent)) parts.at(-1).push([sign]);
    else parts.at(-1).at(-1).push(sign);
  }
  const spans = parts.flatMap((part) => {
    const span = document.createElement("span");
    for (const signs of part) {
      const copy = row.parentElement.cloneNode();
      copy.append(row.cloneNode());
      copy.firstChild.append(...signs);
      if (signs.length) span.append(copy);
    }
    return [span, " "];
  });
  row.parentElement.replaceWith(...spans);
}
// What touches a formula stays in its line: else a line may begin with the comma behind a formula.
for (const formula of document.querySelectorAll("math:not(.formula math)")) {
  const whole = document.createElement("span");
  const before = formula.previousSibling?.data?.match(/[("]+$/)?.[0] ?? "";
  const after = formula.nextSibling?.data?.match(/^[^\s]+/)?.[0] ?? "";
  if (!before && !after) continue;
  whole.className = "whole";
  formula.replaceWith(whole);
  if (before) whole.previousSibling.data = whole.previousSibling.data.slice(0, -before.length);
  if (after) whole.nextSibling.data = whole.nextSibling.data.slice(after.length);
  whole.append(before, formula, after);
}
// A parameter or a word of code is not broken, unless it is long.
for (const part of document.querySelectorAll(".sig-param, :is(p, li) code .pre"))
  if (part.textContent.length < 30) part.style.whiteSpace = "nowrap";
// An option of a command is not broken between its hyphens.
for (const box of document.querySelectorAll(".highlight-sh pre"))
  box.innerHTML = box.innerHTML.replace(/(?<=[ >])--?[a-z][\w-]*/g, "<span style='white-space: nowrap'>$&</span>");
// A longer name is broken behind a dot or an underscore.
for (const name of document.querySelectorAll(".pre, .title, h1, .sidebar-tree a")) {
  if (getComputedStyle(name).whiteSpace === "nowrap") continue;
  for (const text of [...name.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
    const [first, ...others] = text.data.split(/(?<=[._])(?=[a-z])/i);
    text.replaceWith(first, ...others.flatMap((other) => [document.createElement("wbr"), other]));
  }
}
