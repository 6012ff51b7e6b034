// A board: `node board.mjs OPTIONS`, OPTIONS being JSON; its console is on stdin and stdout. Ends when stdin does.
//
// vm            folder of the MicroPython package
// flash         folder that is the board's file system
// heap_kb       memory for Python objects, 0 for no limit
// uarts         {id: path of a terminal, or "tcp:HOST:PORT"}
// cut_after_bytes   the power is cut during the write to flash that exceeds this number of bytes; null for never
// ticks_us      first value of the ticks clock
// unique_id     text
// send_buffer   bytes that a socket or UART takes before it refuses more

import dgram from "node:dgram";
import dns from "node:dns";
import fs from "node:fs";
import net from "node:net";
import tty from "node:tty";
import { Worker } from "node:worker_threads";
import { CHANNELS, Channels, ENDED, FAILED, FREE, Line, OPEN } from "./channels.mjs";
import { LINUX } from "./errors.mjs";

const CONSOLE = 0;
const NAME_UNKNOWN = -2; // error of lwIP's getaddrinfo
const POWER_ON = 1, WATCHDOG = 3; // machine.reset_cause() of the RP2 port

const options = JSON.parse(process.argv[2]);
const channels = new Channels();
const ports = new Map(); // channel -> its server: {line, write, packet, resume, close}
let worker, watchdog;
let leaving = Promise.resolve();

const failure = (error) => LINUX[error.code] ?? LINUX.EIO;

// ---- kinds of channels

// Copies a Node stream into the channel's ring and pauses it while the ring is full. The stream's end and failure wait for the
// kept bytes: Node may report them earlier. Returns `resume`, to call when the ring has room, and `fail`, to report a failure.
function flowing(line, stream) {
  let kept = null, ending = null;
  const take = (data) => {
    const count = line.put(data);
    kept = count < data.length ? data.subarray(count) : null;
    if (kept) stream.pause();
  };
  const end = (state, error) => {
    ending = () => line.become(state, error);
    if (!kept) ending();
  };
  const resume = () => {
    if (!kept) return;
    take(kept);
    if (kept) return;
    if (ending) ending();
    else stream.resume();
  };
  stream.on("data", take);
  stream.on("end", () => end(ENDED));
  return { resume, fail: (error) => end(FAILED, error) };
}

function tcp(line, host, port) {
  const socket = net.connect({ host, port, noDelay: true });
  const { resume, fail } = flowing(line, socket);
  socket.on("connect", () => line.become(OPEN));
  socket.on("error", (error) => fail(failure(error)));
  return {
    write: (data) => socket.write(data, () => line.sent(data.length)),
    resume,
    close: () => socket.destroy(),
  };
}

// Each packet goes into the ring as its length, the address of its sender, and its bytes; one that does not fit is lost.
function udp(line) {
  const socket = dgram.createSocket("udp4");
  socket.on("error", () => {});
  socket.on("message", (data, from) => {
    const head = Uint8Array.from([data.length >> 8, data.length & 255, ...from.address.split(".").map(Number), from.port >> 8, from.port & 255]);
    if (line.room() >= head.length + data.length) line.put(Buffer.concat([head, data]));
    else line.lose(data.length);
  });
  line.become(OPEN);
  return { packet: (data, name, port) => socket.send(data, port, name), close: () => socket.close() };
}

function lookUp(line, name) {
  dns.lookup(name, { family: 4 }, (error, address) => {
    if (error) return line.become(FAILED, -NAME_UNKNOWN);
    line.put(Buffer.from(address));
    line.become(ENDED);
  });
  return { close() {} };
}

// A UART: bytes that its buffer has no room for are lost, as on a board.
function uart(line, id) {
  const place = options.uarts[id];
  if (place === undefined) {
    line.become(OPEN); // nothing is wired to it
    return { write: (data) => line.sent(data.length), close() {} };
  }
  const [stream, write] = place.startsWith("tcp:") ? wiredByTcp(place) : wiredByTerminal(place);
  stream.on("data", (data) => line.lose(data.length - line.put(data)));
  stream.on("error", () => {}); // unplugged: silence
  line.become(OPEN);
  return {
    write: (data) => { write(data); line.sent(data.length); },
    close: () => stream.destroy(),
  };
}

function wiredByTcp(place) {
  const [, host, port] = place.split(":");
  const stream = net.connect({ host, port: Number(port), noDelay: true });
  return [stream, (data) => stream.write(data)];
}

function wiredByTerminal(place) {
  const file = fs.openSync(place, fs.constants.O_RDWR | fs.constants.O_NOCTTY);
  const stream = new tty.ReadStream(file);
  stream.setRawMode(true);
  return [stream, (data) => {
    try {
      fs.writeSync(file, data);
    } catch (error) {
      if (error.code !== "EIO" && error.code !== "EAGAIN") throw error; // unplugged, or its buffer is full
    }
  }];
}

// ---- requests of the VM

const requests = {
  open({ channel, kind, name, port }) {
    const begin = { tcp, udp, uart, name: lookUp }[kind], line = new Line(channels, channel);
    ports.set(channel, { line, ...begin(line, name, port) });
  },
  send: ({ channel, data }) => ports.get(channel)?.write(data),
  packet: ({ channel, data, name, port }) => ports.get(channel)?.packet(data, name, port),
  more: ({ channel }) => ports.get(channel)?.resume?.(),
  close({ channel }) {
    const served = ports.get(channel);
    ports.delete(channel);
    served?.line.leave();
    served?.close();
    channels.become(channel, FREE);
  },
  reset({ hard, raw }) {
    if (hard) clearTimeout(watchdog); // only a hard reset stops a watchdog
    restart({ raw: raw && !hard, cause: POWER_ON });
  },
  watchdog({ ms }) {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => restart({ raw: false, cause: WATCHDOG }), ms);
  },
  up() {},
};

function restart(reset) {
  leaving = leaving.then(async () => {
    const ending = worker;
    worker = null; // its late requests are ignored: a late feed would start the watchdog of the next life
    await ending.terminate();
    for (let channel = 1; channel < CHANNELS; channel++) requests.close({ channel });
    start(reset);
  });
}

function start(reset) {
  const mine = (worker = new Worker(new URL("vm.mjs", import.meta.url), { workerData: { options, shared: channels.shared, reset } }));
  mine.on("message", (request) => { if (worker === mine) requests[request.op](request); });
  mine.on("error", (error) => { fs.writeSync(2, `the VM ended: ${error.stack ?? error}\n`); process.exit(1); });
}

channels.begin(CONSOLE);
setInterval(flowing(new Line(channels, CONSOLE), process.stdin).resume, 20);
process.stdin.on("end", () => process.exit(0));
start({ raw: false, cause: POWER_ON });
