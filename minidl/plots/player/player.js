// The player of a run. Read from top to bottom: data, levels of detail, the view, drawing, words, input.
//
// The page holds two texts: "meta", JSON that describes runs, rows and strings; and "events", base64 of the compressed
// columns of each run (minidl/plots/player/columns.py writes them). Rows that are alike share one track.

const $ = (id) => document.getElementById(id);
const MOST_RECTANGLES = 8000; // events drawn one by one in a frame; rows with more are drawn as shares of time
const MOST_MESSAGES = 1200; // lines from senders to receivers in a frame
const BLOCK = 16; // events of one entry of the next level of detail; larger blocks cost more to sum, smaller ones more memory
const ROW = { least: 9, most: 56 }; // height of a row in CSS pixels
const AXIS = 26, HEADING = 26; // heights above the rows, and above each of several runs

// ---- Data ------------------------------------------------------------------------------------------------------------

const meta = JSON.parse($("meta").textContent);
const kindOf = Object.fromEntries(meta.kinds.map((kind, number) => [kind.name, number]));
const K = meta.kinds.length;

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

const TYPES = { 1: Int8Array, 2: Int16Array, 4: Int32Array, 8: Float64Array }; // by the bytes of a number
const COLUMNS = ["gap", "duration", "kind", "label", "operation", "axis", "call", "bytes", "peer", "causeRow", "cause", "ready"];

class Track { // the events of a row, and of all rows that are alike: those from `first` on in the columns of the run
  constructor(columns, first, count, tick) {
    COLUMNS.forEach((name, n) => (this[name] = columns[n].subarray(first, first + count)));
    this.count = count;
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    this.ready = Float64Array.from(this.ready);
    this.faults = [];
    // Levels of detail: the seconds of each kind before each block of events. With them, the share of each kind in any
    // interval costs a binary search and at most one block, however many events the interval has.
    const blocks = Math.ceil(count / BLOCK), spent = new Float64Array(K);
    this.sums = new Float64Array((blocks + 1) * K);
    for (let i = 0, now = 0; i < count; i++) { // in ticks
      if (i % BLOCK === 0) this.sums.set(spent, (i / BLOCK) * K);
      now += this.gap[i];
      this.start[i] = now * tick;
      this.ready[i] = (now + this.ready[i]) * tick;
      now += this.duration[i];
      this.end[i] = now * tick;
      spent[this.kind[i]] += this.end[i] - this.start[i];
      if (this.kind[i] === FAULT) this.faults.push(i);
    }
    this.sums.set(spent, blocks * K);
  }
  secondsBefore(time, into) { // of each kind
    const last = this.before(time), block = Math.floor(last / BLOCK);
    for (let k = 0; k < K; k++) into[k] = this.sums[block * K + k];
    for (let i = block * BLOCK; i < last; i++) into[this.kind[i]] += this.end[i] - this.start[i];
    for (let i = last - 1; i >= 0 && i >= last - 3; i--) into[this.kind[i]] -= Math.max(this.end[i] - time, 0); // under way
  }
  sharesIn(from, to, columns, spent) { // into `spent`: for each column of an interval, the seconds of each kind in it
    let before = new Float64Array(K), now = new Float64Array(K);
    this.secondsBefore(from, before);
    for (let column = 1, at = 0; column <= columns; column++) {
      this.secondsBefore(from + (column / columns) * (to - from), now);
      for (let k = 0; k < K; k++, at++) spent[at] = now[k] - before[k];
      [before, now] = [now, before];
    }
  }
  before(time) { return lowerBound(this.start, time, this.count); } // number of events that start before that time
  first(time) { // the first event that ends after that time; a moment, such as a fault, may lie inside another event
    let i = Math.max(this.before(time) - 3, 0);
    while (i < this.count && this.end[i] < time) i++;
    return i;
  }
  at(time) { // the event of that time; at a boundary, the later one
    let i = this.before(time);
    while (i < this.count && this.start[i] <= time) i++;
    for (let tries = 0; i > 0 && tries < 3; tries++) if (this.end[--i] > time) return i;
    return -1;
  }
}

function lowerBound(sorted, value, count = sorted.length) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function decoded(buffer) {
  let at = 0;
  for (const run of meta.runs) {
    const events = run.tracks.reduce((sum, count) => sum + count, 0);
    const columns = run.widths.map((width, n) => new TYPES[width](buffer.slice(at, (at += width * (n < COLUMNS.length ? events : run.path)))));
    let first = 0;
    run.tracks = run.tracks.map((count) => new Track(columns, (first += count) - count, count, run.tick));
    const [row, start, end] = columns.slice(COLUMNS.length).map((differences) => { // of the critical path
      let sum = 0;
      return Float64Array.from(differences, (each) => (sum += each));
    });
    run.path = { row, start: start.map((t) => t * run.tick), end: end.map((t) => t * run.tick) };
    run.rows = run.rows.map(([rank, lane, track, look], number) => ({ run, number, rank, lane, look, track: run.tracks[track] }));
    run.weights = new Map();
    for (const row of run.rows) run.weights.set(row.track, (run.weights.get(row.track) || 0) + 1);
  }
}

// An event is named by its row and its number in it.
const peerOf = (row, i) => (row.track.peer[i] < 2 ? row.track.peer[i] - 2 : (row.rank + row.track.peer[i] - 2) % row.run.ranks); // -2: none, -1: the host
function causeOf(row, i) {
  const distance = row.track.causeRow[i];
  return distance && { row: row.run.rows[(row.number + distance - 1) % row.run.rows.length], i: i + row.track.cause[i] };
}

function bytesOf(row, i) { // the second event of a send, its delivery, has none of its own: they count once
  const own = row.track.bytes[i], cause = own || row.track.kind[i] !== SEND ? 0 : causeOf(row, i);
  return cause ? cause.row.track.bytes[cause.i] : own;
}

// ---- The view: what is shown, and where ------------------------------------------------------------------------------

const view = {
  start: 0, end: 1, from: 0, to: 1, // seconds: all that there is, and what is shown
  time: 0, playing: false, // the playhead
  path: false, messages: true, alike: false,
  shown: [], // what is on top of each other: {heading} or {row, others, name}, each with y and height
  chosen: null, hover: null, // {row, i}
  hits: null, // of the search: for each track, the numbers of its events that match
  width: 0, height: 0, gutter: 90, scroll: 0, ratio: 1,
};
const x = (time) => view.gutter + ((time - view.from) / (view.to - view.from)) * (view.width - view.gutter);
const timeAt = (px) => view.from + ((px - view.gutter) / (view.width - view.gutter)) * (view.to - view.from);

function layOut() {
  view.shown = [];
  places = new Map();
  for (const run of meta.runs) {
    if (meta.runs.length > 1) view.shown.push({ heading: run.title || run.source, run });
    const groups = new Map(), rowsOf = []; // ranks whose rows all look alike; the rows of each rank
    for (const row of run.rows) (rowsOf[row.rank] ??= []).push(row);
    for (const rows of rowsOf) {
      const key = view.alike ? rows.map((row) => `${row.lane}:${row.look}`).join() : rows[0].rank;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(rows);
    }
    for (const ranks of groups.values()) {
      const others = ranks.map((rows) => rows[0].rank);
      for (const [n, row] of ranks[0].entries()) {
        const each = { row, others, name: row.lane ? "  concurrent" : named(run.row, others) };
        view.shown.push(each);
        for (const rows of ranks) places.set(rows[n], each);
      }
    }
  }
  const headings = view.shown.filter((each) => each.heading !== undefined).length, rows = view.shown.length - headings;
  $("same").hidden = !view.alike;
  const others = $("details").offsetTop - $("rows").offsetHeight + 142; // what stands above and below the rows
  const room = Math.max(Math.min(innerHeight - others, 640), 200) - AXIS - headings * HEADING;
  const height = Math.min(Math.max(Math.floor(room / Math.max(rows, 1)), ROW.least), ROW.most);
  let y = AXIS + 4;
  for (const each of view.shown) {
    each.y = y;
    each.height = each.row ? height : HEADING;
    y += each.height;
  }
  view.full = y + 6;
  view.height = Math.min(view.full, Math.max(room + AXIS + headings * HEADING + 10, 180));
  $("rows").style.height = `${view.height + 2}px`;
  $("spacer").style.height = `${view.full - view.height}px`;
  view.width = $("rows").clientWidth; // without the scroll bar that these heights may bring
  view.gutter = Math.min(26 + 7 * Math.max(...view.shown.map((each) => (each.name || "").length), 6), view.width / 4, 170);
  sized($("canvas"), view.width, view.height);
  sized($("overview"), $("overview").clientWidth, 44);
  drawOverview();
  draw();
}
let places; // where each row is drawn; rows that are drawn as one have the same place
const placeOf = (row) => places.get(row);

function named(what, ranks) { // "rank 3", "ranks 0 to 3, 8"
  if (ranks.length === 1) return `${what} ${ranks[0]}`;
  const parts = [];
  for (let i = 0, j = 0; i < ranks.length; i = j) {
    while (j < ranks.length && ranks[j] === ranks[i] + j - i) j++;
    parts.push(j - i > 1 ? `${ranks[i]} to ${ranks[j - 1]}` : ranks[i]);
  }
  return `${what}s ${parts.join(", ")}`;
}

function sized(canvas, width, height) {
  view.ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * view.ratio);
  canvas.height = Math.round(height * view.ratio);
  canvas.style.height = `${height}px`;
}

function show(from, to) { // within what there is; never less than a billionth of it
  const whole = view.end - view.start, span = Math.min(Math.max(to - from, whole * 1e-9), whole);
  view.from = Math.min(Math.max(from, view.start), view.end - span);
  view.to = view.from + span;
  draw();
}
const zoom = (factor, time) => show(time - (time - view.from) * factor, time + (view.to - time) * factor);
const pan = (seconds) => show(view.from + seconds, view.to + seconds);

// ---- Colours ---------------------------------------------------------------------------------------------------------

let colours = {}, fill = [], ink = [], packed = []; // of the page; of each kind: text, text on it, and as a pixel's 32 bits
const dark = matchMedia("(prefers-color-scheme: dark)");

function chooseColours() {
  const printing = document.documentElement.classList.contains("print"), style = getComputedStyle(document.documentElement);
  for (const name of ["page", "text", "faint", "line", "edge", "band", "mark", "accent", "hit"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  fill = meta.kinds.map((kind) => (dark.matches && !printing ? kind.dark : kind.light));
  ink = fill.map((colour) => (brightness(colour) > 130 ? "#000000" : "#ffffff"));
  packed = fill.map(pixel);
}
const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const brightness = (colour) => { const [r, g, b] = channels(colour); return 0.299 * r + 0.587 * g + 0.114 * b; };
const pixel = (colour) => { const [r, g, b] = channels(colour); return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; };

// ---- Drawing ---------------------------------------------------------------------------------------------------------

// Where in its row an event is drawn, as shares of the height: sends above, receives below, so that a rank that does both at
// once shows both; waiting is thin, because nothing happens.
const BANDS = { send: [0, 0.48], receive: [0.52, 1], wait: [0.38, 0.62], reduce: [0.12, 0.88] };
const bands = meta.kinds.map((kind) => BANDS[kind.name] || [0, 1]);
const WAIT = kindOf.wait, SEND = kindOf.send, RECEIVE = kindOf.receive, FAULT = kindOf.fault;
const statistics = { rectangles: 0 }; // of the last frame

let scheduled = 0;
function draw() { if (!scheduled) scheduled = requestAnimationFrame(frame); }

function frame() {
  scheduled = 0;
  const pen = $("canvas").getContext("2d", { alpha: false });
  view.scroll = $("rows").scrollTop;
  statistics.rectangles = 0;
  pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, view.width, view.height);
  const visible = view.shown.filter((each) => each.y + each.height > view.scroll + AXIS && each.y < view.scroll + view.height);
  const rows = visible.filter((each) => each.row), most = Math.min((view.width - view.gutter) / 3, MOST_RECTANGLES / Math.max(rows.length, 1));
  const sparse = [], dense = [];
  for (const each of rows) {
    const track = each.row.track;
    each.first = track.first(view.from);
    each.last = track.before(view.to);
    (each.last - each.first <= most ? sparse : dense).push(each);
  }
  if (dense.length) drawShares(pen, dense);
  for (const each of sparse) drawEvents(pen, each);
  if (view.hits) veil(pen, view.gutter, 0.78);
  if (view.hits) for (const each of rows) drawHits(pen, each, Math.max((rows.length * 2 * view.width) / MOST_RECTANGLES, 1));
  if (view.messages) drawMessages(pen, sparse);
  for (const each of rows) drawFaults(pen, each);
  if (view.path) for (const run of meta.runs) drawPath(pen, run);
  if (view.playing) veil(pen, x(view.time), 0.72);
  if (view.playing && view.messages) drawInFlight(pen, sparse);
  drawMarked(pen, view.hover, 1.5);
  drawMarked(pen, view.chosen, 2.5);
  drawNames(pen, visible);
  drawAxis(pen);
  drawPlayhead(pen);
  drawWindow();
  $("dense").style.visibility = dense.length ? "visible" : "hidden";
}

function veil(pen, left, share) {
  pen.globalAlpha = share;
  pen.fillStyle = colours.page;
  pen.fillRect(left, AXIS, view.width, view.height);
  pen.globalAlpha = 1;
}

// Events one by one.
function drawEvents(pen, each) {
  const { row, first, last } = each, track = row.track, small = row.lane > 0;
  const room = each.height > 12 ? (each.height > 24 ? 3 : 2) : 0.5, top = each.y - view.scroll + room, height = each.height - 2 * room;
  pen.fillStyle = colours.band;
  pen.fillRect(view.gutter, each.y - view.scroll + 1, view.width, each.height - 2);
  pen.lineWidth = 1;
  for (let i = first; i < last; i++) {
    const kind = track.kind[i];
    if (kind === FAULT) continue;
    const left = Math.max(x(track.start[i]), view.gutter - 2), right = Math.min(x(track.end[i]), view.width + 2);
    const [above, below] = bands[kind], width = right - left;
    if (width === 0 && kind === 0) continue; // no time between two calls
    pen.fillStyle = fill[kind];
    pen.fillRect(left, top + above * height, Math.max(width - (width > 4 ? 1 : 0), 0.6), (below - above) * height);
    statistics.rectangles++;
    if (kind === WAIT && width > 3 && room > 1) {
      pen.strokeStyle = colours.edge;
      pen.strokeRect(left + 0.5, top + above * height + 0.5, width - 2, (below - above) * height - 1);
    }
    const tall = (below - above) * height;
    if (width > 14 && tall >= 9.5 && !small && kind !== WAIT) write(pen, barTexts(row, i), left, width, top + ((above + below) / 2) * height, tall, ink[kind]);
  }
}

// The first of the texts that fits; the last one is cut if it is long.
function write(pen, texts, left, width, middle, tall, colour) {
  const fitting = (size) => Math.floor((width - 2) / (size * 0.58));
  let size = Math.min(12.5, Math.max(tall - 3, 8)), text = texts.find((each) => each.length <= fitting(size));
  if (text === undefined && texts.at(-1).length <= fitting(8.5)) { text = texts.at(-1); size = Math.min(size, (width - 2) / (0.58 * text.length)); }
  if (text === undefined && fitting(size) > 3) text = texts.at(-1).slice(0, fitting(size) - 1) + "…";
  if (!text) return;
  pen.font = `${size}px system-ui, sans-serif`;
  pen.fillStyle = colour;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  pen.fillText(text, left + width / 2, middle + 0.5, width);
}

// Many events: for each column of pixels the shares of the kinds, stacked, so that areas are right. All such rows are written
// into one picture, whose memory is used again: a new one for each frame would keep the garbage collector busy.
let picture = null, shares = new Float64Array(0);
function drawShares(pen, dense) {
  const ratio = view.ratio, left = Math.round(view.gutter * ratio), width = Math.round(view.width * ratio) - left;
  const low = Math.max(Math.round((dense[0].y - view.scroll) * ratio), 0);
  const high = Math.min(Math.round((dense.at(-1).y + dense.at(-1).height - view.scroll) * ratio), Math.round(view.height * ratio));
  if (high <= low || width < 1) return;
  const rows = high - low, all = (view.to - view.from) / width;
  if (picture?.width !== width || picture.height !== rows) picture = pen.createImageData(width, rows);
  if (shares.length !== width * K) shares = new Float64Array(width * K);
  const pixels = new Uint32Array(picture.data.buffer);
  pixels.fill(pixel(colours.page));
  for (const each of dense) {
    const room = each.height > 12 ? 2 : 0.5;
    const top = Math.round((each.y + room - view.scroll) * ratio) - low, tall = Math.max(Math.round((each.height - 2 * room) * ratio), 1);
    each.row.track.sharesIn(view.from, view.to, width, shares);
    stack(picture, pixels, top, tall, shares, all);
  }
  pen.putImageData(picture, left, low);
}
function stack({ width, height }, pixels, top, tall, shares, all) { // in each column the first kind at the bottom
  for (let column = 0, at = 0; column < width; column++) {
    let done = 0, y = Math.min(tall, height - top);
    for (let k = 0; k < K; k++, at++) {
      if (shares[at] <= 0) continue;
      done += shares[at];
      const roof = Math.max(Math.round(tall * (1 - done / all)), -top, 0), shade = packed[k];
      for (; y > roof; y--) pixels[(top + y - 1) * width + column] = shade;
    }
  }
}
// Hits of the search, each at least so many pixels wide; those that lie under such a one are skipped.
function drawHits(pen, each, least) {
  const track = each.row.track, hits = view.hits.get(track), y = each.y - view.scroll;
  if (!hits) return;
  for (let n = lowerBound(hits, each.first); n < hits.length && hits[n] < each.last; ) {
    const i = hits[n], left = Math.max(x(track.start[i]), view.gutter), right = Math.max(x(track.end[i]), left + least);
    pen.fillStyle = fill[track.kind[i]];
    const [above, below] = bands[track.kind[i]];
    pen.fillRect(left, y + 2 + above * (each.height - 4), right - left, (below - above) * (each.height - 4));
    pen.fillStyle = colours.hit;
    pen.fillRect(left, y + each.height - 3, right - left, 3);
    statistics.rectangles += 2;
    n = Math.max(n + 1, lowerBound(hits, lowerBound(track.end, timeAt(right)))); // the next that ends later
  }
}

// A message: from the sender's row, when both sides were ready, to the receiver's, when it was there. In a pipeline: from the
// end of the action whose result is needed.
function* messagesOf(shown) {
  for (const each of shown) {
    const { row, first, last } = each, track = row.track;
    for (let i = first; i < last; i++) {
      const kind = track.kind[i];
      if (!track.causeRow[i] || kind === WAIT || kind === SEND) continue;
      const cause = causeOf(row, i), from = placeOf(cause.row);
      if (!from || (from === each && kind !== RECEIVE)) continue;
      const isMessage = kind === RECEIVE, other = cause.row.track;
      const start = isMessage ? Math.max(track.ready[i], other.start[cause.i]) : other.end[cause.i], end = isMessage ? track.end[i] : track.start[i];
      yield { from, to: each, start: Math.min(start, end), end, kind: isMessage ? SEND : other.kind[cause.i], isMessage, row, i };
    }
  }
}
function drawMessages(pen, sparse) {
  const found = [];
  for (const message of messagesOf(sparse)) {
    if (found.push(message) > MOST_MESSAGES) return;
  }
  for (const { from, start, end, isMessage, row, i } of found) { // the sender is busy as long as the message is under way
    if (!isMessage || !sparse.includes(from) || from.height < 12 || view.hits) continue;
    const room = from.height > 24 ? 3 : 2, left = Math.max(x(start), view.gutter), right = x(end);
    pen.fillStyle = fill[SEND];
    const top = from.y - view.scroll + room, tall = 0.48 * (from.height - 2 * room);
    pen.fillRect(left, top, Math.max(right - left - 1, 0.5), tall);
    statistics.rectangles++;
    if (right - left > 14 && tall >= 9.5) write(pen, messageTexts(meta.kinds[SEND], row.rank, row.track.bytes[i]), left, Math.min(right, view.width) - left, top + tall / 2, tall, ink[SEND]);
  }
  pen.lineJoin = "round";
  for (const message of found) {
    if (message.from === message.to) continue; // among ranks that are drawn as one
    const [x0, y0, x1, y1] = ends(message), way = Math.sign(y1 - y0);
    if (x1 - x0 < 8 && found.length > 40) continue; // too many and too steep to tell apart
    const line = new Path2D(), head = new Path2D();
    line.moveTo(x0, y0);
    line.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1 - 5 * way);
    head.moveTo(x1, y1);
    head.lineTo(x1 - 3.5, y1 - 7 * way);
    head.lineTo(x1 + 3.5, y1 - 7 * way);
    head.closePath();
    pen.globalAlpha = view.hits ? 0.2 : 0.9;
    outlined(pen, head, 1);
    outlined(pen, line, 1.2);
    pen.fillStyle = colours.mark;
    pen.fill(head);
  }
  pen.globalAlpha = 1;
}
function ends({ from, to, start, end, isMessage }) { // in the bands of sending and of receiving, or between the rows
  const down = to.y > from.y, y = (each, share) => each.y - view.scroll + share * each.height;
  if (isMessage) return [x(start), y(from, 0.3), x(end), y(to, 0.75)];
  return [x(start), y(from, down ? 0.85 : 0.15), x(end), y(to, down ? 0.12 : 0.88)];
}
function drawInFlight(pen, sparse) { // dots that move from sender to receiver
  let count = 0;
  for (const message of messagesOf(sparse)) {
    const { start, end, kind } = message;
    if (start > view.time || end < view.time || end <= start || message.from === message.to || ++count > 200) continue;
    const [, y0, , y1] = ends(message), share = (view.time - start) / (end - start);
    pen.beginPath();
    pen.arc(x(view.time), y0 + (y1 - y0) * share, 5.5, 0, 7);
    pen.fillStyle = fill[kind];
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = colours.mark;
    pen.stroke();
  }
}

function drawFaults(pen, each) {
  const track = each.row.track;
  for (const i of track.faults) {
    if (track.start[i] < view.from || track.start[i] > view.to) continue;
    pen.fillStyle = fill[FAULT];
    pen.strokeStyle = colours.mark;
    pen.font = "bold 20px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 3;
    pen.strokeText("✕", x(track.start[i]), each.y - view.scroll + each.height / 2);
    pen.fillText("✕", x(track.start[i]), each.y - view.scroll + each.height / 2);
  }
}

// The critical path: a line through its events, and from row to row; parts of less than half a pixel are joined.
function drawPath(pen, run) {
  const { row, start, end } = run.path;
  const lines = new Path2D();
  let before = null, count = 0;
  for (let i = lowerBound(end, view.from); i < row.length && start[i] <= view.to; i++) {
    const place = placeOf(run.rows[row[i]]);
    if (!place) continue;
    const y = place.y - view.scroll + place.height - Math.min(4, place.height / 2), left = x(start[i]), right = x(end[i]);
    if (before && right - before.x < 0.5 && before.y === y) continue;
    if (before) lines.lineTo(left, y); else lines.moveTo(left, y);
    lines.lineTo(right, y);
    before = { x: right, y };
    if (++count > MOST_RECTANGLES) break;
  }
  pen.lineJoin = "round";
  outlined(pen, lines, 2);
}
function outlined(pen, path, width) { // visible on every colour
  for (const [colour, thick] of [[colours.page, width + 2.5], [colours.mark, width]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.stroke(path);
  }
}

function drawMarked(pen, event, width) {
  const place = event && placeOf(event.row);
  if (!place) return;
  const { track } = event.row, left = Math.max(x(track.start[event.i]), view.gutter), right = Math.min(Math.max(x(track.end[event.i]), left + 2), view.width);
  if (right <= left) return;
  const box = new Path2D();
  box.rect(left, place.y - view.scroll + 1.5, right - left, place.height - 3);
  outlined(pen, box, width);
}

function drawNames(pen, visible) {
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, view.gutter, view.height);
  pen.textBaseline = "middle";
  let below = -Infinity;
  for (const each of visible) {
    const y = each.y - view.scroll, middle = y + each.height / 2;
    pen.textAlign = "left";
    if (!each.row) {
      pen.font = "bold 13px system-ui, sans-serif";
      pen.fillStyle = colours.text;
      pen.fillText(shortened(pen, each.heading, view.width - 16), 8, middle + 2);
      continue;
    }
    const i = view.playing || view.time > view.start ? each.row.track.at(view.time) : -1;
    if (i >= 0 && each.height > 8) { // what it does now
      pen.fillStyle = fill[each.row.track.kind[i]];
      pen.fillRect(view.gutter - 9, y + 2, 6, each.height - 4);
    }
    if (middle < below) continue; // names would touch
    below = middle + 13;
    pen.font = `${view.chosen && placeOf(view.chosen.row) === each ? "bold " : ""}12px system-ui, sans-serif`;
    pen.fillStyle = each.row.lane ? colours.faint : colours.text;
    pen.fillText(shortened(pen, each.name, view.gutter - 20), 8, middle + 0.5);
  }
}

function shortened(pen, text, width) {
  let end = Math.min(text.length, Math.ceil(width / 3)); // no letter is narrower
  while (end > 1 && pen.measureText(text.slice(0, end) + (end < text.length ? "…" : "")).width > width) end--;
  return end < text.length ? text.slice(0, end) + "…" : text;
}

function drawAxis(pen) {
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, view.width, AXIS);
  const step = niceStep((view.to - view.from) / Math.max((view.width - view.gutter) / 110, 1));
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) {
    const px = Math.round(x(n * step)), text = timeText(n * step, step);
    pen.fillStyle = colours.line;
    pen.fillRect(px, AXIS - 6, 1, 6);
    pen.fillStyle = colours.faint;
    const isCovered = Math.abs(px + 20 - x(view.time)) < 65 && view.time > view.start;
    if (px + pen.measureText(text).width < view.width && !isCovered) pen.fillText(text, px + 3, AXIS / 2);
  }
  pen.fillStyle = colours.line;
  pen.fillRect(0, AXIS, view.width, 1);
  pen.fillStyle = colours.faint;
  pen.fillText("time", 8, AXIS / 2);
}
function niceStep(least) { // the next of 1, 2, 5 times a power of ten
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9)) || 10);
}

function drawPlayhead(pen) {
  const px = x(view.time);
  if (px < view.gutter || px > view.width || (view.time === view.start && !view.playing)) return;
  pen.fillStyle = colours.accent;
  pen.fillRect(px - 1, AXIS - 4, 2, view.height);
  const text = timeText(view.time);
  pen.font = "bold 12px system-ui, sans-serif";
  const width = pen.measureText(text).width + 12, left = Math.min(Math.max(px - width / 2, view.gutter), view.width - width);
  pen.beginPath();
  pen.roundRect(left, 2, width, AXIS - 6, 6);
  pen.fill();
  pen.fillStyle = colours.page;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(text, left + 6, AXIS / 2 - 0.5);
}

// The whole run in small: the shares of time of all ranks together, drawn once; and the part that is shown, framed.
let overview = null;
function drawOverview() {
  const canvas = $("overview"), pen = canvas.getContext("2d"), { width, height } = canvas;
  if (!width) return;
  const image = pen.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const spent = new Float64Array(width * K), one = new Float64Array(width * K);
  let tracks = 0;
  for (const run of meta.runs) for (const [track, weight] of run.weights) {
    tracks += weight;
    track.sharesIn(view.start, view.end, width, one);
    for (let at = 0; at < one.length; at++) spent[at] += weight * one[at];
  }
  const all = (tracks * (view.end - view.start)) / width || 1;
  stack(image, pixels, 0, height, spent, all);
  overview = image;
}
function drawWindow() {
  const canvas = $("overview"), pen = canvas.getContext("2d"), { width, height } = canvas;
  if (!overview) return;
  pen.putImageData(overview, 0, 0);
  const at = (time) => ((time - view.start) / (view.end - view.start)) * width, left = at(view.from), right = Math.max(at(view.to), left + 2);
  pen.globalAlpha = 0.65;
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, left, height);
  pen.fillRect(right, 0, width, height);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 2 * view.ratio;
  pen.strokeRect(left + pen.lineWidth / 2, pen.lineWidth / 2, right - left - pen.lineWidth, height - pen.lineWidth);
  if (view.time > view.start) {
    pen.fillStyle = colours.accent;
    pen.fillRect(at(view.time) - 1, 0, 2 * view.ratio, height);
  }
}

// ---- Words -----------------------------------------------------------------------------------------------------------

const unit = () => meta.runs[0].unit;
function timeText(time, step) { // in the unit in which the number is short; with the digits that a step needs
  if (unit() !== "s") return `${+time.toPrecision(7)}`;
  const size = step === undefined ? Math.abs(time) : Math.max(Math.abs(view.to), step);
  const [factor, name] = size > 0.9999995 || size === 0 ? [1, "s"] : size > 0.9999995e-3 ? [1e3, "ms"] : size > 0.9999995e-6 ? [1e6, "µs"] : [1e9, "ns"];
  if (step === undefined) return `${+(time * factor).toPrecision(6)} ${name}`;
  return `${(time * factor).toFixed(Math.max(0, Math.min(12, -Math.floor(Math.log10(step * factor) + 1e-9))))} ${name}`;
}
function bytesText(bytes) { // in powers of 1000, as minidl.plots.style.bytes_text
  for (const [power, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "KB"]]) if (bytes >= 0.9995 * power) return `${+(bytes / power).toPrecision(3)} ${name}`;
  return `${bytes} B`;
}
const labelOf = (track, i) => { // a label may be as long as a book
  const text = meta.strings[track.label[i]];
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};
const peerText = (row, i) => { const peer = peerOf(row, i); return peer === -1 ? "the host" : peer < 0 ? "all" : `${row.run.row} ${peer}`; };

function barTexts(row, i) { // what may stand in a bar, the longest first
  const { track } = row, kind = meta.kinds[track.kind[i]], size = bytesText(bytesOf(row, i));
  if (kind.name === "send" || kind.name === "receive") return messageTexts(kind, peerOf(row, i), bytesOf(row, i));
  if (kind.name === "reduce") return [`${kind.mark} ${size}`, kind.mark];
  return [meta.strings[track.label[i]] || kind.name];
}
function messageTexts(kind, peer, bytes) {
  const whom = peer === -1 ? "host" : peer < 0 ? "all" : peer;
  return [`${kind.mark} ${kind.name === "send" ? "to" : "from"} ${whom}, ${bytesText(bytes)}`, `${kind.mark} ${whom}, ${bytesText(bytes)}`, `${kind.mark} ${whom}`, kind.mark];
}

function words(row, i) { // of an event, line by line
  const { track, run } = row, kind = meta.kinds[track.kind[i]].name, place = placeOf(row), cause = causeOf(row, i);
  const label = labelOf(track, i), operation = meta.strings[track.operation[i]], axis = meta.strings[track.axis[i]];
  const isOne = !place || place.others.length === 1;
  const who = (isOne ? named(run.row, [row.rank]) : `${named(run.row, place.others)}, such as ${run.row} ${row.rank}`) + (row.lane ? `, concurrent (${row.lane})` : "");
  const what = { send: `sends ${bytesText(bytesOf(row, i))} to ${peerText(row, i)}`, receive: `receives ${bytesText(track.bytes[i])} from ${peerText(row, i)}`,
    wait: "waits" + (peerOf(row, i) >= 0 ? ` for ${peerText(row, i)}` : ""), reduce: `reduces ${bytesText(track.bytes[i])}`, fault: "fault" }[kind] || kind;
  const lines = [`${who}: ${what}${label ? `, ${kind === "send" || kind === "receive" || kind === "wait" || kind === "reduce" ? "after " : ""}${label}` : ""}`];
  lines.push(track.start[i] === track.end[i] ? `at ${timeText(track.start[i])}` : `${timeText(track.end[i] - track.start[i])}, from ${timeText(track.start[i])} to ${timeText(track.end[i])}`);
  if (operation) lines.push(`in ${operation}, call ${track.call[i]}${axis ? `, axis ${axis}` : ""}`);
  if (cause) lines.push(causeText(kind, row, i, cause));
  return lines.join("\n");
}
function causeText(kind, row, i, cause) {
  const other = cause.row.track, of = `${cause.row.run.row} ${cause.row.rank}`, bytes = bytesText(other.bytes[cause.i]);
  if (kind === "wait") { // what the peer did until it was ready
    const before = doneBefore(cause);
    const message = meta.kinds[other.kind[cause.i]].name === "send" ? `had ${bytes} to send` : `was ready to receive ${bytes}`;
    return `until ${of} ${message}${before}`;
  }
  if (kind === "receive") return `sent by ${of} in ${meta.strings[other.operation[cause.i]] || "send"}, call ${other.call[cause.i]}; both ready at ${timeText(row.track.ready[i])}`;
  if (kind === "send") return `received by ${of} at ${timeText(other.end[cause.i])}`;
  const name = labelOf(other, cause.i) || meta.kinds[other.kind[cause.i]].name;
  const waited = row.track.start[i] - (i ? row.track.end[i - 1] : 0);
  return `needs ${name} of ${of}, done at ${timeText(other.end[cause.i])}${waited > 0 ? `; idle before for ${timeText(waited)}` : ""}`;
}
function doneBefore({ row, i }) { // the last activity of a row that took time before the event
  for (let j = i - 1, tries = 0; j >= 0 && tries < 5; j--, tries++) {
    const { track } = row, name = meta.kinds[track.kind[j]].name;
    if (track.end[j] > track.start[j] && name !== "fault") return `, after ${labelOf(track, j) || name}`;
  }
  return "";
}

function writeLegend() {
  const spent = new Float64Array(K), now = new Float64Array(K);
  let whole = 0;
  for (const run of meta.runs) for (const row of run.rows) {
    if (row.lane) continue;
    row.track.secondsBefore(Infinity, now);
    now.forEach((seconds, k) => (spent[k] += seconds));
    whole += WAIT === undefined ? run.end : now.reduce((sum, seconds) => sum + seconds); // as Trace.shares: ranks may end early
  }
  const where = { send: ", above", receive: ", below", wait: ", thin" }, height = { send: "7px", receive: "7px", wait: "4px" };
  const items = meta.kinds.map((kind, k) => {
    if (!spent[k] && !(k === FAULT && meta.runs.some((run) => run.tracks.some((track) => track.faults.length)))) return "";
    const item = document.createElement("li"), box = document.createElement("i"), share = document.createElement("small");
    Object.assign(box.style, { background: fill[k], height: height[kind.name] || "12px" });
    share.textContent = spent[k] ? `${((100 * spent[k]) / whole).toFixed(1)} %` : "";
    item.append(box, `${kind.mark} ${kind.name}${where[kind.name] || ""} `, share);
    return item;
  });
  $("legend").replaceChildren(...items, $("same"), $("dense"));
}
function writeFacts() {
  const events = meta.runs.reduce((sum, run) => sum + run.rows.reduce((n, row) => n + row.track.count, 0), 0);
  const rows = meta.runs.reduce((sum, run) => sum + run.ranks, 0), notes = meta.runs.map((run) => run.note).filter(Boolean);
  const sources = [...new Set(meta.runs.map((run) => run.source))].join(" and ");
  const runs = meta.runs.length > 1 ? [`${meta.runs.length} runs`] : [];
  const facts = [...runs, `${rows.toLocaleString("en")} ${meta.runs[0].row}${rows === 1 ? "" : "s"}`, `${events.toLocaleString("en")} events`, timeText(Math.max(...meta.runs.map((run) => run.end))) + (unit() === "s" ? "" : ` ${unit()}`), sources, ...notes];
  $("facts").textContent = facts.join(" · ");
  $("canvas").setAttribute("aria-label", `Timeline: ${facts.join(", ")}. Arrow keys go from event to event; the words below name it.`);
}

// ---- Input -----------------------------------------------------------------------------------------------------------

const HINT = "Click an event, or press →, to read it.\nHold the pointer over one to see what it waited for; space plays the run.";
function choose(event, scroll = true) {
  view.chosen = event;
  $("details").classList.toggle("chosen", Boolean(event));
  $("details").textContent = event ? words(event.row, event.i) : HINT;
  if (event && scroll) {
    const { track } = event.row, start = track.start[event.i], end = track.end[event.i], span = view.to - view.from, place = placeOf(event.row);
    view.time = start;
    if (start < view.from || Math.min(end, start + span) > view.to) show(start - span / 3, start - span / 3 + span);
    if (place.y < view.scroll + AXIS) $("rows").scrollTop = place.y - AXIS - 4;
    if (place.y + place.height > view.scroll + view.height) $("rows").scrollTop = place.y + place.height - view.height + 6;
  }
  draw();
}
function step(way) { // to the next event of the row that takes time
  const row = view.chosen ? view.chosen.row : view.shown.find((each) => each.row).row, track = row.track;
  let i = view.chosen ? view.chosen.i + way : Math.min(track.first(Math.max(view.time, view.from)), track.count - 1);
  while (i >= 0 && i < track.count && track.start[i] === track.end[i] && track.kind[i] !== FAULT) i += way;
  if (i >= 0 && i < track.count) choose({ row, i });
}
function otherRow(way) {
  const rows = view.shown.filter((each) => each.row?.track.count), now = view.chosen ? rows.indexOf(placeOf(view.chosen.row)) : way > 0 ? -1 : rows.length;
  const next = rows[now + way], time = view.chosen ? view.chosen.row.track.start[view.chosen.i] : Math.max(view.time, view.from);
  if (!next) return;
  const i = next.row.track.at(time);
  choose({ row: next.row, i: i >= 0 ? i : Math.min(next.row.track.before(time), next.row.track.count - 1) });
}

let ticking = 0; // the next frame of playing
function play(on) {
  cancelAnimationFrame(ticking);
  view.playing = on;
  $("play").textContent = on ? "❚❚" : "▶︎";
  $("play").setAttribute("aria-label", on ? "pause" : "play");
  if (on && (view.time >= view.to || view.time < view.from)) view.time = view.from;
  let last = performance.now();
  const tick = (now) => {
    const span = view.to - view.from;
    view.time += (Math.min(Math.max(now - last, 0), 250) / 1000 / Number($("speed").value)) * span; // no frame comes while the page is hidden
    last = now;
    if (view.time >= view.end) { view.time = view.end; return play(false); }
    if (view.time > view.to) show(view.to, view.to + span);
    draw();
    ticking = requestAnimationFrame(tick);
  };
  if (on) ticking = requestAnimationFrame(tick);
  draw();
}

function toggle(name, on = !view[name]) {
  view[name] = $(name).checked = on;
  if (name === "alike") layOut(); else draw();
}

function search() {
  const text = $("search").value.trim().toLowerCase();
  view.hits = null;
  $("hits").textContent = "";
  if (!text) return draw();
  const rank = meta.runs.flatMap((run) => run.rows).find((row) => row.track.count && `${row.run.row} ${row.rank}` === text);
  if (rank) { $("hits").textContent = "1 row"; return choose({ row: rank, i: 0 }); }
  const having = (names) => new Set(names.flatMap((name, n) => (name.toLowerCase().includes(text) ? [n] : [])));
  const strings = having(meta.strings), kinds = having(meta.kinds.map((kind) => kind.name));
  view.hits = new Map();
  let count = 0;
  for (const run of meta.runs) for (const [track, weight] of run.weights) {
    const hits = [];
    for (let i = 0; i < track.count; i++) if (kinds.has(track.kind[i]) || strings.has(track.label[i]) || strings.has(track.operation[i]) || strings.has(track.axis[i])) hits.push(i);
    view.hits.set(track, Uint32Array.from(hits));
    count += weight * hits.length;
  }
  $("hits").textContent = count ? `${count.toLocaleString("en")} hits` : "no hit";
  draw();
}
function nextHit(way) { // in order of time, after or before the chosen event, over all rows
  if (!view.hits) return;
  const { row: here, i: at } = view.chosen || { row: null, i: -1 }, now = here ? here.track.start[at] : way > 0 ? -Infinity : Infinity;
  const rank = (row) => view.shown.indexOf(placeOf(row));
  let best = null;
  for (const each of view.shown) {
    if (!each.row) continue;
    const { track } = each.row, hits = view.hits.get(track);
    const later = (i) => (track.start[i] - now || rank(each.row) - (here ? rank(here) : 0) || i - at) * way;
    let n = lowerBound(hits, track.before(now));
    if (way > 0) while (n < hits.length && later(hits[n]) <= 0) n++;
    else { while (n < hits.length && track.start[hits[n]] <= now) n++; n--; while (n >= 0 && later(hits[n]) <= 0) n--; }
    if (n < 0 || n >= hits.length) continue;
    const start = track.start[hits[n]];
    if (!best || (start - best.row.track.start[best.i]) * way < 0 || (start === best.row.track.start[best.i] && way < 0)) best = { row: each.row, i: hits[n] };
  }
  if (best) choose(best);
}

function eventAt(px, py) {
  const y = py + view.scroll, place = view.shown.find((each) => y >= each.y && y < each.y + each.height);
  if (!place || !place.row || px < view.gutter || py < AXIS) return null;
  const { track } = place.row, time = timeAt(px), near = (3 * (view.to - view.from)) / (view.width - view.gutter);
  let i = track.at(time);
  i = track.faults.find((j) => Math.abs(track.start[j] - time) <= near) ?? i;
  if (i < 0) { const j = track.before(time); if (j < track.count && track.start[j] - time < near) i = j; }
  return i < 0 ? null : { row: place.row, i };
}
function hover(event, clientX, clientY) {
  view.hover = event;
  const tip = $("tip");
  tip.hidden = !event;
  if (event) {
    tip.textContent = words(event.row, event.i);
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.transform = `translate(${Math.max(4, Math.min(clientX + 14, innerWidth - width - 8))}px, ${clientY + 18 + height < innerHeight ? clientY + 18 : Math.max(4, clientY - height - 12)}px)`;
  }
  draw();
}

function listen() {
  const canvas = $("canvas"), pointers = new Map();
  let moved = 0;
  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, place(event));
    try { canvas.setPointerCapture(event.pointerId); } catch { /* a made-up pointer, as in a test */ }
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = place(event), before = pointers.get(event.pointerId);
    if (!before) return hover(eventAt(...here), event.clientX, event.clientY);
    const other = [...pointers.entries()].find(([id]) => id !== event.pointerId)?.[1];
    if (other) { // two fingers: both stay on their times
      const [a, b] = [timeAt(before[0]), timeAt(other[0])], width = view.width - view.gutter;
      const scale = Math.abs((a - b) / (here[0] - other[0])); // the fingers may cross
      if (Math.abs(here[0] - other[0]) > 8) show(b - (other[0] - view.gutter) * scale, b - (other[0] - view.gutter) * scale + scale * width);
    } else {
      moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]);
      if (moved > 3) { hover(null); pan(timeAt(before[0]) - timeAt(here[0])); if (event.pointerType === "mouse") $("rows").scrollTop += before[1] - here[1]; }
    }
    pointers.set(event.pointerId, here);
  });
  const up = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved <= 3 && !pointers.size) {
      const at = eventAt(...place(event));
      choose(at, false);
      if (at || place(event)[1] < AXIS) { view.time = Math.min(Math.max(timeAt(place(event)[0]), view.start), view.end); draw(); }
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", (event) => zoom(0.4, timeAt(place(event)[0])));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), timeAt(place(event)[0]));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(((event.deltaX || event.deltaY) / (view.width - view.gutter)) * (view.to - view.from));
    else return; // rows, or the page, scroll
    event.preventDefault();
  }, { passive: false });
  const small = $("overview"), moveWindow = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = small.getBoundingClientRect(), middle = view.start + ((event.clientX - box.left) / box.width) * (view.end - view.start), half = (view.to - view.from) / 2;
    show(middle - half, middle + half);
  };
  small.addEventListener("pointerdown", moveWindow);
  small.addEventListener("pointermove", moveWindow);

  const middle = () => (view.time > view.from && view.time < view.to ? view.time : (view.from + view.to) / 2);
  const keys = {
    " ": () => play(!view.playing), ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => otherRow(1), ArrowUp: () => otherRow(-1),
    "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), 0: () => show(view.start, view.end),
    Home: () => show(view.start, view.start + view.to - view.from), End: () => show(view.end - view.to + view.from, view.end),
    c: () => toggle("path"), m: () => toggle("messages"), g: () => toggle("alike"), "/": () => $("search").focus(),
    w: () => { const cause = view.chosen && causeOf(view.chosen.row, view.chosen.i); if (cause) choose({ row: placeOf(cause.row) ? cause.row : view.chosen.row, i: cause.i }); },
    Enter: () => nextHit(1), n: () => nextHit(1), N: () => nextHit(-1),
    Escape: () => { play(false); $("search").value = ""; search(); choose(null); hover(null); },
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target === $("search"), control = event.target.closest?.("button, select, summary, label, input");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing && event.key === "Enter") { nextHit(event.shiftKey ? -1 : 1); return event.preventDefault(); }
    if (typing && event.key === "Escape") { keys.Escape(); return canvas.focus(); }
    if (typing || (control && (event.key === " " || event.key === "Enter" || control.tagName === "SELECT"))) return;
    const action = event.shiftKey && event.key.startsWith("Arrow") ? () => pan(((event.key === "ArrowRight") - (event.key === "ArrowLeft")) * 0.2 * (view.to - view.from)) : keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  const buttons = { play: " ", back: "ArrowLeft", forth: "ArrowRight", in: "+", out: "-", fit: "0" };
  for (const [name, key] of Object.entries(buttons)) $(name).onclick = keys[key];
  for (const name of ["path", "messages", "alike"]) $(name).onchange = () => toggle(name, $(name).checked);
  $("search").oninput = search;
  $("rows").addEventListener("scroll", draw);
  addEventListener("resize", layOut);
  new ResizeObserver(() => { if ($("rows").clientWidth !== view.width) layOut(); }).observe($("rows"));
  const recoloured = () => { chooseColours(); writeLegend(); layOut(); };
  dark.addEventListener("change", recoloured);
  const printed = (on) => { // paper is white; the frame is drawn at once, because none follows before it is printed
    document.documentElement.classList.toggle("print", on);
    $("words").open = on || wasOpen;
    recoloured();
    frame();
  };
  let wasOpen = false;
  addEventListener("beforeprint", () => { wasOpen = $("words").open; printed(true); });
  addEventListener("afterprint", () => printed(false));
}

async function begin() {
  decoded(await inflated($("events").textContent));
  view.end = view.to = Math.max(...meta.runs.map((run) => run.end)) || 1;
  const first = Math.min(...meta.runs.flatMap((run) => run.tracks.map((track) => (track.count ? track.start[0] : view.end))));
  if (first > 0.1 * view.end && first < view.end) view.from = first; // a part of a run
  $("timeline").hidden = false;
  $("words").open = false;
  chooseColours();
  const alike = (run) => new Set(run.rows.map((row) => row.look)).size < run.rows.length;
  const rows = meta.runs.reduce((sum, run) => sum + run.rows.length, 0), some = meta.runs.some(alike);
  view.alike = $("alike").checked = some && rows > 24;
  $("alike").parentElement.hidden = !some;
  $("path").parentElement.hidden = meta.runs.every((run) => !run.path.row.length);
  const hasMessages = meta.runs.some((run) => run.tracks.some((track) => track.causeRow.some(Boolean)));
  $("messages").parentElement.hidden = !hasMessages;
  writeFacts();
  writeLegend();
  listen();
  choose(null);
  layOut();
  window.player = { view, meta, statistics, show, frame, words, x }; // for scripts, such as tests
}

begin().catch((error) => {
  $("failed").textContent = `The picture cannot be shown (${error.message}); it needs a browser of 2023 or later. The table says what it shows.`;
  $("failed").hidden = false;
});
