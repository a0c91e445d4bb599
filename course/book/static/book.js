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
