// Streams between the thread of the VM, which may block, and the thread of Node's event loop, which owns ports and sockets.
//
// Towards the VM: one ring of bytes for each channel in shared memory, and a counter of events to sleep on.
// From the VM: messages; OUT counts the bytes that have not reached the system yet.

export const CHANNELS = 16; // 0 is the console; a board's lwIP has about as many sockets
export const RING_BYTES = 16384;
export const FREE = 0, OPENING = 1, OPEN = 2, ENDED = 3, FAILED = 4; // STATE of a channel
export const EVENTS = 0; // counts the changes of all channels
const STATE = 0, HEAD = 1, TAIL = 2, OUT = 3, ERROR = 4, LIMIT = 5, LOST = 6, FIELDS = 8;
const HEADER_INTS = 8 + CHANNELS * FIELDS;

export class Channels {
  constructor(shared = new SharedArrayBuffer(4 * HEADER_INTS + CHANNELS * RING_BYTES)) {
    this.shared = shared;
    this.ints = new Int32Array(shared, 0, HEADER_INTS);
    this.bytes = new Uint8Array(shared, 4 * HEADER_INTS);
  }

  _get(channel, field) { return Atomics.load(this.ints, 8 + channel * FIELDS + field); }
  _set(channel, field, value) { Atomics.store(this.ints, 8 + channel * FIELDS + field, value); }

  event() {
    Atomics.add(this.ints, EVENTS, 1);
    Atomics.notify(this.ints, EVENTS);
  }
  events() { return Atomics.load(this.ints, EVENTS); }

  // Sleeps until anything happens after `events` was read, at most `ms` milliseconds; without limit if null.
  wait(events, ms) { Atomics.wait(this.ints, EVENTS, events, ms === null ? Infinity : ms); }

  begin(channel, limit = RING_BYTES - 1) {
    for (const field of [HEAD, TAIL, OUT, ERROR, LOST]) this._set(channel, field, 0);
    this._set(channel, LIMIT, Math.min(limit, RING_BYTES - 1));
    this._set(channel, STATE, OPENING);
  }
  state(channel) { return this._get(channel, STATE); }
  error(channel) { return this._get(channel, ERROR); }
  become(channel, state, error = 0) {
    this._set(channel, ERROR, error);
    this._set(channel, STATE, state);
    this.event();
  }

  unsent(channel) { return this._get(channel, OUT); }
  addUnsent(channel, count) { Atomics.add(this.ints, 8 + channel * FIELDS + OUT, count); }
  lost(channel) { return this._get(channel, LOST); }
  addLost(channel, count) { Atomics.add(this.ints, 8 + channel * FIELDS + LOST, count); }

  available(channel) { return (this._get(channel, HEAD) - this._get(channel, TAIL) + RING_BYTES) % RING_BYTES; }
  room(channel) { return this._get(channel, LIMIT) - this.available(channel); }

  // Puts in the bytes that fit and returns their number. Event loop only.
  put(channel, data) {
    const count = Math.min(data.length, Math.max(0, this.room(channel)));
    const base = channel * RING_BYTES, head = this._get(channel, HEAD);
    const first = Math.min(count, RING_BYTES - head);
    this.bytes.set(data.subarray(0, first), base + head);
    this.bytes.set(data.subarray(first, count), base);
    this._set(channel, HEAD, (head + count) % RING_BYTES);
    this.event();
    return count;
  }

  // Takes out the bytes that fit into `target` and returns their number. Thread of the VM only.
  take(channel, target) {
    const count = Math.min(target.length, this.available(channel));
    const base = channel * RING_BYTES, tail = this._get(channel, TAIL);
    const first = Math.min(count, RING_BYTES - tail);
    target.set(this.bytes.subarray(base + tail, base + tail + first), 0);
    target.set(this.bytes.subarray(base, base + count - first), first);
    this._set(channel, TAIL, (tail + count) % RING_BYTES);
    return count;
  }

  // Like `take`, but 0 means the end, -errno a failure, null no bytes yet. Thread of the VM only.
  // The state is read first: bytes that come between the two reads, and the end after them, are left to the next call.
  takeOrEnd(channel, target) {
    const state = this.state(channel), count = this.take(channel, target);
    if (count || state === ENDED) return count;
    return state === FAILED ? -this.error(channel) : null;
  }
}

// The event loop's handle of a channel. After `leave`, late calls (an answer, the end of a write) do nothing: the channel may
// have another user by then.
export class Line {
  constructor(channels, channel) {
    this.channels = channels;
    this.channel = channel;
    this.isLeft = false;
  }

  leave() { this.isLeft = true; }
  become(state, error) { if (!this.isLeft) this.channels.become(this.channel, state, error); }
  put(data) { return this.isLeft ? data.length : this.channels.put(this.channel, data); }
  room() { return this.channels.room(this.channel); }
  lose(count) { if (!this.isLeft) this.channels.addLost(this.channel, count); }
  sent(count) {
    if (this.isLeft) return;
    this.channels.addUnsent(this.channel, -count);
    this.channels.event();
  }
}
