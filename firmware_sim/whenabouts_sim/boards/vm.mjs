// The thread of one life of a board, from one reset to the next: the VM, its console, and the functions for its shims.
//
// It may block at any time: the thread of the event loop (board.mjs) owns ports and sockets.
//
// This build collects memory only when it is called while no Python runs, and if a collection was requested before. So a
// long-running program hands its steps to this thread: main.py ends and leaves an iterator `program`, which this thread advances
// one step at a time. The allocations of one step must fit into the free memory.

import fs from "node:fs";
import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { CHANNELS, Channels, ENDED, FAILED, FREE, OPEN } from "./channels.mjs";
import { LINUX, withLinuxErrors } from "./errors.mjs";
import { flashFs } from "./flash_fs.mjs";

const CONSOLE = 0;
const CTRL_A = 1, CTRL_B = 2, CTRL_C = 3, CTRL_E = 5;
const FORCED_EXIT = 0x100; // of the REPL: Ctrl-D
const PYSTACK_WORDS = 8192;
const SHIMS_BYTES = 24 * 1024; // room for the shims, which boards have in their ROM; `boot` takes the rest away
const TICKS_MASK = (1 << 30) - 1;
const RAW_PROMPT = "raw REPL; CTRL-B to exit\r\n>";

const { options, shared, reset } = workerData;
const channels = new Channels(shared);
const started = process.hrtime.bigint();

// ---- the VM, with its memory, which its package does not export

let memory, mayGrow = true;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (bytes, imports) => {
  const wrapped = withLinuxErrors(imports), resize = imports.env.emscripten_resize_heap;
  wrapped.env.emscripten_resize_heap = (size) => (mayGrow ? resize(size) : 0);
  const made = await instantiate(bytes, wrapped);
  memory = made.instance.exports.memory;
  return made;
};
const { loadMicroPython } = await import(path.join(options.vm, "micropython.mjs"));
const heapBytes = options.heap_kb ? options.heap_kb * 1024 + SHIMS_BYTES : 4 * 1024 * 1024;
const mp = await loadMicroPython({
  pystack: PYSTACK_WORDS, heapsize: heapBytes, stdin: nextOfConsole, stdout: print, stderr: print, linebuffer: false,
});

// ---- the console

let printed = [], tail = "", raw = false, running = false;
const heard = []; // bytes for the console that were taken from the ring

function print(bytes) {
  printed.push(...bytes);
  if (printed.length >= 256 || bytes.includes(10)) flush(); // whole lines are out before the power goes
}

function flush() {
  if (!printed.length) return;
  const data = Uint8Array.from(printed);
  printed = [];
  tail = (tail + Buffer.from(data).toString("latin1")).slice(-RAW_PROMPT.length);
  if (tail === RAW_PROMPT) raw = true;
  for (let at = 0; at < data.length; ) at += fs.writeSync(1, data, at);
}

// Takes the bytes that came; while Python runs, Ctrl-C is an interrupt, not a byte. True if there was an interrupt.
function listen() {
  const size = channels.available(CONSOLE);
  if (!size) return false;
  const data = new Uint8Array(size);
  channels.take(CONSOLE, data);
  let interrupted = false;
  for (const byte of data) {
    if (running && byte === CTRL_C) {
      mp._module.ccall("mp_sched_keyboard_interrupt", "null", [], []);
      interrupted = true;
    } else heard.push(byte);
  }
  return interrupted;
}

function nextOfConsole() {
  flush();
  for (;;) {
    const events = channels.events();
    listen();
    if (heard.length) return heard.shift();
    channels.wait(events, null);
  }
}

// Feeds the REPL until it requests a soft reset. Raw paste is refused, as a board may; mpremote then works without it.
function converse() {
  for (;;) {
    const byte = nextOfConsole();
    if (raw && byte === CTRL_E) {
      const next = [nextOfConsole(), nextOfConsole()];
      if (next[0] === 0x41 && next[1] === CTRL_A) print([0x52, 0]);
      else heard.unshift(...next);
      continue;
    }
    if (raw && byte === CTRL_B) raw = false;
    running = true;
    const result = mp.replProcessChar(byte);
    running = false;
    flush();
    if (result & FORCED_EXIT) return;
  }
}

// ---- functions for the shims; numbers are 32 bits wide, bytes are passed by address

const at = (address, size) => new Uint8Array(memory.buffer, address, size);
const elapsedUs = () => (process.hrtime.bigint() - started) / 1000n + BigInt(options.ticks_us ?? 0);

function pause(ms) {
  flush();
  const until = performance.now() + ms;
  for (;;) {
    const events = channels.events();
    const left = until - performance.now();
    if (listen() || left <= 0) return;
    channels.wait(events, left);
  }
}

const host = {
  ticks_us() { listen(); return Number(elapsedUs() & BigInt(TICKS_MASK)); },
  ticks_ms() { listen(); return Number((elapsedUs() / 1000n) & BigInt(TICKS_MASK)); },
  random(address, size) { crypto.getRandomValues(at(address, size)); },
  wall_us(address) { new DataView(memory.buffer).setBigInt64(address, BigInt(Date.now()) * 1000n, true); },
  sleep_ms: pause,
  // A channel, or -errno. kind: "tcp", "udp", "uart", "name".
  open(kind, name, port, limit) {
    for (let channel = 1; channel < CHANNELS; channel++)
      if (channels.state(channel) === FREE) {
        channels.begin(channel, limit || undefined);
        parentPort.postMessage({ op: "open", channel, kind, name, port });
        return channel;
      }
    return -LINUX.ENFILE;
  },
  // Number of bytes read, 0 at the end, or -errno. ms: how long to wait for them, -1 for no limit.
  recv(channel, address, size, ms) {
    const until = ms < 0 ? Infinity : performance.now() + ms;
    for (;;) {
      const events = channels.events();
      if (listen()) return -LINUX.EINTR;
      const count = channels.takeOrEnd(channel, at(address, size));
      if (count > 0) parentPort.postMessage({ op: "more", channel });
      if (count !== null) return count;
      const left = until - performance.now();
      if (left <= 0) return ms === 0 ? -LINUX.EAGAIN : -LINUX.ETIMEDOUT;
      flush();
      channels.wait(events, Math.min(left, 100));
    }
  },
  available: (channel) => channels.available(channel),
  // Number of bytes accepted, or -errno.
  send(channel, address, size) {
    if (channels.state(channel) === FAILED) return -channels.error(channel);
    if (channels.state(channel) === ENDED) return -LINUX.EPIPE;
    const count = Math.min(size, options.send_buffer - channels.unsent(channel));
    if (count <= 0 || channels.state(channel) !== OPEN) return -LINUX.EAGAIN;
    channels.addUnsent(channel, count);
    parentPort.postMessage({ op: "send", channel, data: at(address, count).slice() });
    return count;
  },
  // Sends one packet to an address. Packets are never refused.
  send_to(channel, address, size, name, port) {
    parentPort.postMessage({ op: "packet", channel, data: at(address, size).slice(), name, port });
    return size;
  },
  // Bits of `select.poll`: 1 readable, 4 writable, 8 failed, 16 ended.
  poll(channel) {
    const state = channels.state(channel);
    let bits = channels.available(channel) ? 1 : 0;
    if (state === OPEN && channels.unsent(channel) < options.send_buffer) bits |= 4;
    if (state === FAILED) bits |= 8 | 16;
    if (state === ENDED) bits |= 1 | 16;
    return bits;
  },
  state: (channel) => channels.state(channel),
  close(channel) { parentPort.postMessage({ op: "close", channel }); },
  reset(hard) {
    flush();
    parentPort.postMessage({ op: "reset", hard, raw });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); // this thread ends here
  },
  watchdog(ms) { parentPort.postMessage({ op: "watchdog", ms }); },
  reset_cause: () => reset.cause,
  unique_id: () => options.unique_id,
};

// ---- flash

let budget = options.cut_after_bytes ?? Infinity;
function write(file, data, position) {
  if (data.length > budget) {
    fs.writeSync(file, data, 0, budget, position);
    process.kill(process.pid, "SIGKILL"); // the power is cut
  }
  budget -= data.length;
  return fs.writeSync(file, data, 0, data.length, position);
}

// ---- a life

function boot() {
  mp.registerJsModule("_host", host);
  for (const name of ["flash", "shims"]) mp.FS.mkdirTree("/" + name);
  const folder = new URL("shims/", import.meta.url);
  for (const name of fs.readdirSync(folder)) if (name.endsWith(".py")) mp.FS.writeFile("/shims/" + name, fs.readFileSync(new URL(name, folder)));
  mp.FS.mount(flashFs(mp.FS, options.flash, write), {}, "/flash");
  mp.runPython("import sys\nsys.path.insert(0, '/shims')\nimport _start\n_start.names = globals()");
  if (!options.heap_kb) return;
  // Take all memory in which the heap could grow by a new area, then the unused part of the room for the shims.
  mayGrow = false;
  for (let size = 1 << 24; size >= 1 << 15; ) if (!mp._module._malloc(size)) size >>= 1;
  const { collect, mem_alloc } = mp.pyimport("gc");
  collect(); // happens before the next call
  const used = mem_alloc();
  if (used > SHIMS_BYTES) throw new Error(`the shims: found ${used} bytes, expected at most ${SHIMS_BYTES}`);
  mp.pyimport("_start").fill(SHIMS_BYTES - used);
}

// Runs a file of the flash as a reset does, and then, step by step, the iterator `program` if the file leaves one. `sys.exit()`
// requests another reset.
function runFile(name) {
  if (!fs.existsSync(path.join(options.flash, name))) return;
  const { run, step, report } = mp.pyimport("_start");
  running = true;
  let next = run(name);
  while (next === "step") {
    listen();
    next = step();
  }
  running = false;
  report();
  flush();
  if (next === "reset") softReset();
}

function softReset() {
  print(Buffer.from("MPY: soft reboot\r\n"));
  host.reset(false);
}

boot();
parentPort.postMessage({ op: "up" });
runFile("boot.py");
if (!reset.raw) runFile("main.py");
const silent = printed;
mp.replInit();
if (reset.raw) {
  printed = silent;
  mp.replProcessChar(CTRL_A);
}
flush();
converse();
softReset();
