// The page of `spxctl serve`: draws what the server tells, once for each look at the job. Nothing is asked of anybody else.
'use strict';

const svgSpace = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

// element makes an element with attributes and children; texts become text, never markup.
function element(name, attributes, ...children) {
  const e = document.createElement(name);
  fill(e, attributes, children);
  return e;
}
function drawn(name, attributes, ...children) {
  const e = document.createElementNS(svgSpace, name);
  fill(e, attributes, children);
  return e;
}
function fill(e, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  e.append(...children);
}

// number is a number in few letters: 12.3k.
function number(v) {
  if (v < 0.05) return '0';
  if (v < 10) return v.toFixed(1);
  for (const unit of ['', 'k', 'M', 'G', 'T', 'P']) {
    if (v < 999.5) return (unit === '' || v >= 99.95 ? v.toFixed(0) : v.toFixed(1)) + unit;
    v /= 1000;
  }
  return 'many';
}
const share = (v) => (v < 0 ? '–' : Math.round(100 * v) + '%');
const rate = (rates, v) => (rates.wait < 0 ? '–' : number(v));
const clock = (at) => new Date(at * 1000).toLocaleTimeString('en-GB');

// classes of states, as in style.css, in the order of the legend.
const states = { 'running': 'running', 'waiting': 'waiting', 'before MPI_Init': 'starting', 'stopped': 'stopped', 'after MPI_Finalize': 'finalized',
  'ended': 'ended', 'dead': 'dead', 'not known': 'unknown' };

let view = null;      // the last one
let chosen = null;    // number of the process whose details are shown
const history = [];   // of sums: {messages, bytes, wait}
const remembered = 120;

// ---- sums ---------------------------------------------------------------------------------------------------------

function showTiles() {
  const all = view.all;
  const alive = all.processes - (all.states.dead || 0) - (all.states.ended || 0);
  const tiles = [
    [alive + ' of ' + all.processes, 'processes alive'],
    [String(view.hosts.length), view.hosts.length === 1 ? 'host' : 'hosts'],
    [rate(all.rates, all.rates.messages_sent), 'messages/s'],
    [rate(all.rates, all.rates.bytes_sent), 'bytes/s'],
    [rate(all.rates, all.rates.collectives), 'collectives begun/s'],
    [share(all.rates.wait), 'wait'],
    [String(all.dead), 'dead', all.dead > 0],
  ];
  if (view.clusters) tiles.splice(2, 0, [String(view.clusters.length), 'clusters']);
  byId('tiles').replaceChildren(...tiles.map(([value, what, bad]) =>
    element('div', { class: bad ? 'tile bad' : 'tile' }, element('b', {}, value), element('span', {}, what))));
}

function showChart(id, values, text) {
  const width = 300, height = 50, svg = byId(id), most = Math.max(...values, 1e-9);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const x = (i) => (width * (i + remembered - values.length)) / (remembered - 1);
  const points = values.map((v, i) => `${x(i).toFixed(1)},${(height - 2 - (height - 6) * v / most).toFixed(1)}`);
  const parts = [];
  if (points.length > 1) {
    parts.push(drawn('polygon', { class: 'area', points: `${x(0).toFixed(1)},${height} ${points.join(' ')} ${width},${height}` }));
    parts.push(drawn('polyline', { class: 'curve', points: points.join(' ') }));
  }
  svg.replaceChildren(...parts);
  svg.parentNode.querySelector('figcaption').textContent = text(most);
}

function showCharts() {
  showChart('chart-messages', history.map((h) => h.messages), (most) => `messages/s, at most ${number(most)}`);
  showChart('chart-bytes', history.map((h) => h.bytes), (most) => `bytes/s, at most ${number(most)}`);
  showChart('chart-wait', history.map((h) => h.wait), (most) => `wait, at most ${share(most)}`);
}

// ---- the map ------------------------------------------------------------------------------------------------------

const cell = 22, gap = 4, margin = 14, headRoom = 40;

// loudest is the highest traffic of a process: levels are drawn on a logarithmic scale up to it.
function level(process, loudest) {
  const v = process.rates.bytes_sent + process.rates.bytes_received;
  return v <= 0 || loudest <= 1 ? 0 : Math.max(0.08, Math.min(1, Math.log1p(v) / Math.log1p(loudest)));
}

function rankCell(process, x, y, loudest) {
  const kind = states[process.state] || 'unknown';
  const h = level(process, loudest) * (cell - 4);
  const parts = [drawn('rect', { class: `rank ${kind}${process.proc === chosen ? ' chosen' : ''}`, x, y, width: cell, height: cell, rx: 4, 'data-proc': process.proc },
    drawn('title', {}, `${nameOf(process)}: ${describe(process)}`))];
  if (h > 0) parts.push(drawn('rect', { class: 'level', x: x + cell - 7, y: y + cell - 2 - h, width: 5, height: h, rx: 1 }));
  if (kind === 'dead') {
    parts.push(drawn('path', { class: 'cross', d: `M${x + 6},${y + 6}l10,10m0,-10l-10,10` }));
  }
  return parts;
}

function nameOf(process) {
  if (process.link) return `process ${process.proc} of link ${process.link}`;
  if (process.cluster) return `rank ${process.rank} of ${process.cluster}`;
  return process.world ? `rank ${process.rank} of world ${process.world}` : `rank ${process.rank}`;
}
function describe(process) {
  if (process.state === 'waiting') return `${process.call} for ${process.seconds.toFixed(1)} s`;
  return process.end ? `${process.state}, ${process.end}` : process.state;
}

// block is a box with the cells of its processes: {name, note, kind, processes} at (x, y).
function block(b, loudest) {
  const parts = [drawn('rect', { class: `box ${b.kind || ''}`, x: b.x, y: b.y, width: b.width, height: b.height, rx: 8 }),
    drawn('text', { class: 'name', x: b.x + margin, y: b.y + 18 }, b.name),
    drawn('text', { class: 'note', x: b.x + margin, y: b.y + 32 }, b.note)];
  b.processes.forEach((p, i) => {
    const x = b.x + margin + (i % b.across) * (cell + gap), y = b.y + headRoom + Math.floor(i / b.across) * (cell + gap);
    parts.push(...rankCell(p, x, y, loudest));
  });
  return parts;
}

// measure gives a block its size: about as wide as high, and wide enough for its texts.
function measure(b, widest) {
  const most = Math.max(1, Math.floor((widest - 2 * margin + gap) / (cell + gap)));
  b.across = Math.min(most, Math.max(8, Math.ceil(Math.sqrt(b.processes.length * 2))));
  const text = Math.max(b.name.length * 8, b.note.length * 6);
  b.width = Math.min(widest, Math.max(2 * margin + Math.min(b.across, b.processes.length) * (cell + gap) - gap, 2 * margin + text));
  b.height = headRoom + Math.ceil(Math.max(1, b.processes.length) / b.across) * (cell + gap) - gap + margin;
}

function flowNote(rates) { return `${rate(rates, rates.messages_sent)} msg/s, ${rate(rates, rates.bytes_sent)} B/s, wait ${share(rates.wait)}`; }

function hostBlocks(list) {
  return view.hosts.map((h) => ({ name: h.name, note: `${h.processes} ranks, ${flowNote(h.rates)}`, processes: list.filter((p) => p.host === h.name) }));
}

// layers puts clusters from left to right along the links: each to the right of those that send to it, as far as there are no circles.
function layers() {
  const layer = new Map(view.clusters.map((c) => [c.name, 0]));
  for (let round = 0; round < view.clusters.length; round++) {
    for (const k of view.links || []) {
      if (k.name.endsWith('.back')) continue;
      for (const from of k.from) for (const to of k.to) {
        if (from !== to && layer.get(to) <= layer.get(from) && layer.get(from) + 1 < view.clusters.length) layer.set(to, layer.get(from) + 1);
      }
    }
  }
  return layer;
}

function drawMap() {
  const svg = byId('map'), width = Math.max(320, svg.clientWidth || 800), parts = [];
  const list = view.processes.slice().sort((a, b) => a.world - b.world || a.rank - b.rank || a.proc - b.proc);
  const loudest = Math.max(0, ...list.map((p) => p.rates.bytes_sent + p.rates.bytes_received));
  const height = view.clusters ? drawSystem(parts, list, width, loudest) : drawHosts(parts, list, width, loudest);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('height', height);
  svg.replaceChildren(...parts);
}

function drawHosts(parts, list, width, loudest) {
  let x = 0, y = 0, row = 0;
  for (const b of hostBlocks(list)) {
    measure(b, width);
    if (x > 0 && x + b.width > width) [x, y, row] = [0, y + row + margin, 0];
    [b.x, b.y] = [x, y];
    parts.push(...block(b, loudest));
    x += b.width + margin;
    row = Math.max(row, b.height);
  }
  return y + row + 2;
}

function drawSystem(parts, list, width, loudest) {
  const layer = layers(), columns = Math.max(...layer.values()) + 1, between = 150;
  const widest = Math.max(110, (width - (columns - 1) * between) / columns), place = new Map(), bottom = new Array(columns).fill(0);
  for (const c of view.clusters) {
    const again = c.restarts > 0 ? `, started again ${c.restarts} times` : '';
    const b = { name: c.name, note: `${c.state}, ${c.alive} of ${c.ranks} alive${again}`, kind: c.state, processes: list.filter((p) => p.cluster === c.name) };
    measure(b, widest);
    b.width = widest;
    const column = layer.get(c.name);
    [b.x, b.y] = [column * (widest + between), bottom[column]];
    bottom[column] += b.height + 2 * margin + 20;
    parts.push(...block(b, loudest));
    parts.push(drawn('text', { class: 'note', x: b.x + margin, y: b.y + b.height + 14 }, flowNote(c.rates)));
    place.set(c.name, b);
  }
  let low = Math.max(...bottom);
  for (const k of view.links || []) low = Math.max(low, drawLink(parts, k, list.filter((p) => p.link === k.name), place, loudest));
  return low + 2;
}

// drawLink draws a link with its I/O processes in the middle, and what they hold. It returns how far down it goes.
function drawLink(parts, k, iops, place, loudest) {
  const from = k.from.map((n) => place.get(n)), to = k.to.map((n) => place.get(n));
  if (from.length === 0 || to.length === 0) return 0;
  const back = k.name.endsWith('.back') ? 46 : 0;
  const right = from[0].x <= to[0].x;
  const middle = (b) => b.y + Math.min(b.height / 2, 50) + back;
  const start = (b) => (right ? b.x + b.width : b.x), end = (b) => (right ? b.x : b.x + b.width);
  const x = (start(from[0]) + end(to[0])) / 2, y = (middle(from[0]) + middle(to[0])) / 2;
  const wide = k.rates.wait < 0 || k.rates.bytes_sent <= 0 ? 1 : Math.min(6, 1 + Math.log10(1 + k.rates.bytes_sent) / 2);
  for (const b of from) parts.push(drawn('path', { class: 'arrow', 'stroke-width': wide, d: `M${start(b)},${middle(b)}C${x},${middle(b)} ${x},${y} ${x},${y}` }));
  for (const b of to) {
    const e = end(b), s = right ? -1 : 1;
    parts.push(drawn('path', { class: 'arrow', 'stroke-width': wide, d: `M${x},${y}C${x},${y} ${x},${middle(b)} ${e + 8 * s},${middle(b)}` }));
    parts.push(drawn('path', { class: 'tip', d: `M${e},${middle(b)}l${10 * s},-6v12z` }));
  }
  const first = x - (iops.length * (cell + gap) - gap) / 2;
  iops.forEach((p, i) => parts.push(...rankCell(p, first + i * (cell + gap), y - cell / 2, loudest)));
  const text = (dy, words) => parts.push(drawn('text', { class: 'note', x, y: y + dy, 'text-anchor': 'middle' }, words));
  text(-cell / 2 - 6, k.name);
  if (iops.length > 0) {
    text(cell / 2 + 13, `${rate(k.rates, k.rates.messages_sent)} msg/s`);
    text(cell / 2 + 26, `holds ${number(k.messages_held)} (${number(k.bytes_held || 0)} B)`);
  }
  return y + cell / 2 + 32;
}

// ---- details and log ----------------------------------------------------------------------------------------------

function showDetail() {
  const p = view.processes.find((q) => q.proc === chosen);
  if (!p) return;
  const rows = [['process', nameOf(p)], ['on', `${p.host}, pid ${p.pid}`], ['state', describe(p)],
    ['sends', `${rate(p.rates, p.rates.messages_sent)} messages/s, ${rate(p.rates, p.rates.bytes_sent)} B/s`],
    ['receives', `${rate(p.rates, p.rates.messages_received)} messages/s, ${rate(p.rates, p.rates.bytes_received)} B/s`],
    ['collectives', `${rate(p.rates, p.rates.collectives)}/s`], ['waits', share(p.rates.wait)], ['has sent to', `${p.peers} processes`],
    ['connections', String(p.connections)], ['failures', String(p.failures_noticed)]];
  byId('detail').replaceChildren(...rows.flatMap(([what, value]) => [element('dt', {}, what), element('dd', {}, value)]));
}

function addEvents(events) {
  const log = byId('log');
  for (const e of events) log.prepend(element('li', { class: e.kind }, element('time', {}, clock(e.at)), e.text));
  while (log.children.length > 300) log.lastChild.remove();
}

function showLegend() {
  const parts = Object.entries(states).filter(([state]) => view.all.states[state] > 0)
    .flatMap(([state, kind]) => [element('i', { class: kind }), `${state}: ${view.all.states[state]}`]);
  byId('legend').replaceChildren(...parts, '   The bar in a rank: its bytes per second, on a logarithmic scale.');
}

// ---- what the server tells ----------------------------------------------------------------------------------------

function show() {
  byId('title').textContent = view.system ? `system ${view.system}` : `job ${view.job}`;
  byId('program').textContent = view.program;
  document.title = `${view.system || view.job} - spxctl serve`;
  showTiles();
  showCharts();
  drawMap();
  showLegend();
  showDetail();
}

function state(text, kind) {
  byId('link').textContent = text;
  byId('link').className = kind;
}

// When the button goes down: until it goes up again the map may have been drawn anew.
byId('map').addEventListener('pointerdown', (e) => {
  const proc = e.target.getAttribute('data-proc');
  if (proc === null || !view) return;
  chosen = Number(proc);
  show();
});
window.addEventListener('resize', () => view && drawMap());

const source = new EventSource('events');
let fresh = true; // the next message has all events so far
source.onopen = () => { fresh = true; };
source.onmessage = (m) => {
  const told = JSON.parse(m.data);
  if (fresh) byId('log').replaceChildren();
  fresh = false;
  addEvents(told.events);
  if (told.view) {
    view = told.view;
    const r = view.all.rates;
    if (r.wait >= 0) history.push({ messages: r.messages_sent, bytes: r.bytes_sent, wait: r.wait });
    if (history.length > remembered) history.shift();
    state('live', 'on');
    show();
  }
  if (told.ended) {
    state('the job has ended', 'off');
    source.close();
  }
};
source.onerror = () => { if (source.readyState !== EventSource.CLOSED) state('no connection', 'off'); };
