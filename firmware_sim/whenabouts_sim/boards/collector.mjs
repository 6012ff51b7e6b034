// A garbage collection while Python runs.
//
// This build collects only when no Python runs at all: what lies in variables of C might be all that holds an object, and those
// cannot be seen. A `while True` in main.py would never free anything. Frames of Python, though, lie on a stack of their own,
// which the collector does look at. So where a function of Python was called by another one, up to the top, and asks the host
// for something itself, nothing is held by C alone, and a collection is safe. That is where the shims ask for it: in
// `time` and `gc`, which nobody calls from within a sort or another loop in C.
//
// The build counts how deep it is in calls from outside, and collects when a call ends that took the count from 0 to 1. The
// place of the counter is read from the code of a function that begins with counting.

const COUNTS = ["mp_js_repl_process_char"];

function* sections(bytes) {
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at];
    const [length, begin] = leb(bytes, at + 1);
    yield { id, begin, end: begin + length };
    at = begin + length;
  }
}

function leb(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return [value >>> 0, at];
  }
}

// The body of the exported function of this name.
function body(bytes, name) {
  let imported = 0, index = -1;
  for (const { id, begin } of sections(bytes)) {
    let [count, at] = leb(bytes, begin);
    if (id === 2) imported = WebAssembly.Module.imports(new WebAssembly.Module(bytes)).filter((one) => one.kind === "function").length;
    if (id === 7)
      while (count--) {
        let length;
        [length, at] = leb(bytes, at);
        const found = new TextDecoder().decode(bytes.subarray(at, at + length));
        const kind = bytes[at + length];
        let number;
        [number, at] = leb(bytes, at + length + 1);
        if (kind === 0 && found === name) index = number;
      }
    if (id === 10)
      for (let n = imported; count--; n++) {
        let length;
        [length, at] = leb(bytes, at);
        if (n === index) return bytes.subarray(at, at + length);
        at += length;
      }
  }
  throw new Error(`the VM: found no function ${name}, expected the build that package-lock.json names`);
}

// The address of the counter: the body begins, behind its count of locals, with
//   i32.const 0, i32.const 0, i32.load align=2 ADDRESS, i32.const 1, i32.add, i32.store align=2 ADDRESS
export function depthAddress(bytes) {
  const code = body(bytes, COUNTS[0]);
  const [locals, begin] = leb(code, 0);
  const [address, behind] = leb(code, begin + 6);
  const head = [...code.subarray(begin, begin + 6)], rest = [...code.subarray(behind, behind + 5)];
  const fits = locals === 0 && `${head}` === `${[0x41, 0, 0x41, 0, 0x28, 2]}` && `${rest}` === `${[0x41, 1, 0x6a, 0x36, 2]}`;
  if (!fits || leb(code, behind + 5)[0] !== address)
    throw new Error("the VM: its counter of calls is not where it was, expected the build that package-lock.json names");
  return address;
}
