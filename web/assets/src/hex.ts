/** Bytes as people look at them: 16 in a line, in hexadecimal and as characters. */

export interface Line {
  at: string;
  hex: string;
  text: string;
}

export function dump(bytes: Uint8Array, most = 4096): Line[] {
  const out: Line[] = [];
  for (let i = 0; i < Math.min(bytes.length, most); i += 16) {
    const part = [...bytes.subarray(i, Math.min(i + 16, bytes.length, most))];
    const hex = part.map((b) => b.toString(16).padStart(2, "0"));
    out.push({
      at: i.toString(16).padStart(4, "0"),
      hex: `${hex.slice(0, 8).join(" ").padEnd(23)}  ${hex.slice(8).join(" ").padEnd(23)}`,
      text: part.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : "·")).join(""),
    });
  }
  return out;
}
