// A guess without a kernel: the browser alone keeps it, and the text below shows how far off it was (as `guess.py` does).
(() => {
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const kept = (window.minidlGuesses ??= {}); // of this page, which may not be allowed to store more
  const place = (key) => `minidl guess ${location.pathname} ${key}`;
  const load = (key) => {
    if (key in kept) return kept[key];
    try {
      return JSON.parse(localStorage.getItem(place(key)));
    } catch {}
  };
  const store = (key, guess) => {
    kept[key] = guess;
    try {
      localStorage.setItem(place(key), JSON.stringify(guess));
    } catch {}
  };
  // Rounded to significant digits; as in Python, a tie goes to the even digit.
  const rounded = (size, digits) => {
    const [exact, power] = size.toExponential(60).split("e");
    const figures = exact.replace(".", "");
    const head = figures.slice(0, digits);
    const isDown = /^50*$/.test(figures.slice(digits)) && head.at(-1) % 2 === 0;
    return isDown ? +`${head}e${power - digits + 1}` : +size.toPrecision(digits);
  };
  // Python's f"{value:,.{digits}g}".
  const text = (value, digits) => {
    const size = rounded(Math.abs(value), digits);
    const power = +size.toExponential().split("e")[1];
    const [whole, fraction] = String(size).split(".");
    const plain = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction ? "." + fraction : "");
    const short = size.toExponential().replace(/e(.)(\d)$/, "e$10$2");
    return (value < 0 ? "-" : "") + (power < -4 || power >= digits ? short : plain);
  };
  const distance = (value, answer, unit) => {
    if (value === answer) return "right";
    const apart = Math.abs(value - answer);
    if (apart <= 0.05 * Math.abs(answer)) return "right within 5 %";
    const way = value > answer ? "large" : "small";
    if (unit === "%" || value * answer <= 0)
      return `${text(apart, 3)} ${unit === "%" ? "points" : unit}`.trim() + ` too ${way}`;
    const factor = Math.max(value / answer, answer / value);
    if (factor >= 2) return `too ${way} by a factor of ${text(rounded(factor, 2), 6)}`;
    const percent = 100 * Math.abs(value / answer - 1);
    const whole = Math.round(percent);
    return `${percent % 1 === 0.5 ? whole - (whole % 2) : whole} % too ${way}`;
  };
  // The number that was typed, with or without its unit; NaN if it is none.
  const number = (typed, spellings) => {
    let words = typed.toLowerCase().replace(/^[~≈]+/, "").trim();
    for (const unit of spellings)
      if (words.endsWith(unit.toLowerCase())) words = words.slice(0, words.length - unit.length).trim();
    const [head, digits, ...more] = words.split(",");
    if (digits !== undefined && !more.length && !words.includes(".") && (digits.length !== 3 || !+head))
      words = `${head}.${digits}`;
    const [above, below = "1", ...rest] = words
      .replaceAll(",", "")
      .split("/")
      .map((part) => (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(part.trim()) ? +part : NaN));
    const value = above / below;
    return rest.length || !isFinite(value) ? NaN : value;
  };
  const fill = () => {
    for (const span of document.querySelectorAll("[data-against]")) {
      const { key, answer, unit } = JSON.parse(decodeURIComponent(span.dataset.against));
      const guess = load(key);
      const off = ([right, words]) => (guess.value === right ? ": right" : `: wrong, it is ${words}`);
      const far = () => (answer.length ? off(answer) : ", " + distance(guess.value, answer, unit));
      span.textContent = guess ? guess.text + far() : "none";
    }
  };
  const start = (form) => {
    form.dataset.started = "";
    const { key, choices, unit, spellings } = JSON.parse(form.dataset.guess);
    const noted = make("div", { ariaLive: "polite" });
    const note = (guess) => {
      store(key, guess);
      noted.textContent = `Your guess: ${guess ? guess.text : "none"}. Read on.`;
      fill();
    };
    const button = (textContent, onclick) => make("button", { type: "button", textContent, onclick, style: "margin:3px" });
    const field = make("input", { size: 8, ariaLabel: `your guess${unit && " in " + unit}` });
    const read = () => {
      const value = number(field.value, spellings);
      if (isNaN(value)) noted.textContent = "Please type a number, such as 0.5 or 2e3.";
      else note({ value, text: text(value, 10) + (unit === "%" ? unit : unit && " " + unit) });
    };
    field.onchange = read; // Enter, or the focus moves on
    const answers = choices.map(([words, shown], value) => button(words, () => note({ value, text: shown })));
    const controls = answers.length ? answers : [field, ` ${unit} `, button("guess", read)];
    const guess = load(key);
    if (guess) noted.textContent = `Your guess: ${guess.text}.`;
    form.replaceChildren(...controls, button("give up", () => note(null)), noted);
  };
  document.querySelectorAll(".minidl-guess:not([data-started])").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", fill);
  else fill();
})();
