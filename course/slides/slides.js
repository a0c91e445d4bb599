// Keys, touch, the presenter's notes, and smaller text where a slide is full.
(() => {
  const root = document.documentElement;
  const slides = [...document.querySelectorAll("main > section")];
  const [count, help] = ["footer output", "dialog"].map((tag) => document.querySelector(tag));
  const buttons = document.querySelectorAll("footer button");
  const heading = (slide) => slide?.querySelector("h1, h2").textContent ?? "the end";
  const answer = () => slides[now].querySelector(".answer");
  let [now, presenter, touched] = [0, null, null];

  // At one size for all windows: lengths are relative to a slide's width, so this holds for print, too.
  const fit = (body) => {
    const size = parseFloat(getComputedStyle(body).fontSize) / parseFloat(getComputedStyle(body.parentNode).fontSize);
    const isFull = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
    for (let share = 0.95; share > 0.3 && isFull(); share -= 0.05) body.style.fontSize = `${size * share}em`;
    if (body.style.fontSize) body.style.fontSize = `calc(0.97 * ${body.style.fontSize})`; // print rounds otherwise
  };
  const show = (number, isTold = false) => {
    now = Math.min(Math.max(number || 0, 0), slides.length - 1);
    slides.forEach((slide) => slide.classList.toggle("now", slide === slides[now]));
    answer()?.classList.toggle("told", isTold);
    count.textContent = `${now + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${now + 1}`);
    slides[now].focus({ preventScroll: true });
    scrollTo(0, 0);
    present();
  };
  const present = () => {
    if (!presenter || presenter.closed) return;
    const { body } = presenter.document;
    presenter.document.title = `Notes ${count.textContent}`;
    body.innerHTML = `<h3></h3>${slides[now].querySelector("aside").innerHTML}<hr><i></i>`;
    body.firstChild.textContent = `${count.textContent} ${heading(slides[now])}`;
    body.lastChild.textContent = `Next: ${heading(slides[now + 1])}`;
  };
  const back = () => show(now - 1, true);
  const on = () => (answer()?.matches(":not(.told)") ? answer().classList.add("told") : show(now + 1, !slides[now + 1]));
  const toHelp = () => help.showModal();
  const keys = {
    ArrowRight: on, ArrowDown: on, PageDown: on, " ": on, ArrowLeft: back, ArrowUp: back, PageUp: back,
    Home: () => show(0), End: () => show(slides.length - 1), "?": toHelp, n: () => root.classList.toggle("notes"),
    f: () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen()),
    p: () => {
      presenter = open("", "notes", "width=800,height=600");
      presenter.document.body.style.font = "1.3rem/1.5 system-ui, sans-serif";
      presenter.onkeydown = press;
      present();
    },
  };
  const press = (event) => {
    const isTurned = event.target.closest?.("input, select") && !event.key.startsWith("Page"); // a clicker sends these
    const isPressed = event.key === " " && event.target.closest?.("button");
    if (isTurned || isPressed || event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    if (help.open) help.close();
    event.preventDefault();
    (event.shiftKey && event.key === " " ? back : keys[event.key])();
  };
  addEventListener("keydown", press);
  addEventListener("hashchange", () => show(parseInt(location.hash.slice(1)) - 1));
  addEventListener("touchstart", ({ touches, target }) => {
    touched = touches.length === 1 && !target.closest("input, select, pre, table") ? touches[0] : null;
  });
  addEventListener("touchend", ({ changedTouches: [end] }) => {
    const [x, y] = touched ? [end.clientX - touched.clientX, end.clientY - touched.clientY] : [0, 0];
    if (Math.abs(x) > Math.max(50, 2 * Math.abs(y))) x < 0 ? on() : back();
  });
  [back, on, toHelp].forEach((act, place) => (buttons[place].onclick = act));
  help.onclick = () => help.close();
  root.classList.add("js", "fitting");
  document.querySelectorAll(".body").forEach(fit);
  root.classList.remove("fitting");
  show(parseInt(location.hash.slice(1)) - 1);
})();
