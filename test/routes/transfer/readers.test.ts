import { createHash } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import {
  bytesOf,
  type DocumentReader,
  importPages,
  maxImportBytes,
  readLines,
  readVersion1,
} from "../../../src/routes/transfer-document.ts";

const id = `ent_${"0".repeat(34)}`;
const exportedAt = "2026-02-18T15:00:00.000Z";
const memories = Array.from({ length: 1200 }, (_, index) => ({ key: `k${index}`, value: "ü", updatedAt: exportedAt }));
const head = { format: "colloquy.agent", version: 2, exportedAt };
const lines = [
  { kind: "agent", ...head, agent: { id, config: { name: "Analyst" } } },
  ...memories.map((row) => ({ kind: "memory", row })),
  { kind: "end", lines: 1201 },
].map((line) => JSON.stringify(line));
const version1 = JSON.stringify({ ...head, version: 1, agent: { memories, id, config: { name: "Analyst" } } });
const formats: [string, DocumentReader, string][] = [
  ["lines", readLines, `${lines.join("\n")}\n`],
  ["lines that end with CR LF", readLines, lines.join("\r\n")],
  ["a document of version 1", readVersion1, version1],
];

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

const inPieces = (all: Uint8Array, size: number): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < all.length; at += size) controller.enqueue(all.slice(at, at + size));
      controller.close();
    },
  });

const read = async (reader: DocumentReader, all: Uint8Array | string, size = 1000, maxBytes = maxImportBytes) => {
  const hash = createHash("sha256");
  const bytes = typeof all === "string" ? encode(all) : all;
  const pages: number[] = [];
  const found = [];
  for await (const page of importPages(reader(bytesOf(inPieces(bytes, size), hash, maxBytes)))) {
    if (page.head) found.push(page.head);
    pages.push(page.rows.length);
  }
  return { pages, found, sha256: hash.digest("hex") };
};

describe.each(formats)("%s", (_, reader, text) => {
  const bytes = encode(text);

  test.each([1, 3, 1000, 1_000_000])(
    "become the same pages, whatever pieces they arrive in: %i bytes",
    async (size) => {
      const { pages, found, sha256 } = await read(reader, bytes, size);
      expect(pages).toEqual([500, 500, 200]);
      expect(found).toMatchObject([
        {
          kind: "agent",
          version: 2,
          exportedAt,
          agent: { id, config: { name: "Analyst", continuity: "consciousness" } },
        },
      ]);
      expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
    },
  );

  test("[B3] are refused beyond maxImportBytes", async () => {
    await expect(read(reader, bytes, 100, bytes.length)).resolves.toBeDefined();
    await expect(read(reader, bytes, 100, bytes.length - 1)).rejects.toMatchObject({
      code: "payload_too_large",
      message: `The import has more than ${bytes.length - 1} bytes (maxImportBytes).`,
    });
  });

  test("[S4] are refused where they are no UTF-8, or end within a character", async () => {
    const broken = Uint8Array.from(bytes);
    const at = broken.indexOf(0xc3);
    broken[at + 1] = 0x20;
    await expect(read(reader, broken)).rejects.toMatchObject({ code: "invalid_json" });
    await expect(read(reader, bytes.slice(0, at + 1))).rejects.toMatchObject({ code: "invalid_json" });
    await expect(read(reader, "")).rejects.toMatchObject({ code: "invalid_json" });
  });

  test("[S4] are refused where their sender goes away", async () => {
    const cut = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, 100));
      },
      pull(controller) {
        controller.error(new Error("gone"));
      },
    });
    const pages = importPages(reader(bytesOf(cut, createHash("sha256"))));
    await expect(Array.fromAsync(pages)).rejects.toMatchObject({ code: "invalid_json" });
  });
});

test.each([
  ["lines", readLines, `${lines[0]}\n{"kind":"block","row":`],
  ["a document of version 1", readVersion1, '{"agent":'],
])("[C13] %s of more than maxImportValues: refused before it is parsed", async (_, reader, before) => {
  const parse = vi.spyOn(JSON, "parse");
  try {
    const text = `${before}[${Array(400_001).fill("{}").join()}]}\n`;
    await expect(read(reader, text, 100_000)).rejects.toThrow("at most 400000 values (maxImportValues)");
    expect(parse.mock.calls.filter(([each]) => each.length > 1000)).toEqual([]);
  } finally {
    parse.mockRestore();
  }
});

describe("lines", () => {
  test("[S4] cut anywhere are refused", async () => {
    const text = [lines[0], lines[1], '{"kind":"end","lines":2}'].join("\n");
    await expect(read(readLines, text)).resolves.toBeDefined();
    for (let length = 0; length < text.length; length += 1) {
      await expect(read(readLines, text.slice(0, length)), String(length)).rejects.toMatchObject({
        code: "invalid_json",
      });
    }
  });

  test("[B3] longer than maxImportLineBytes are refused while they arrive", async () => {
    const long = `${lines[0]}\n{"kind":"block","row":{"label":"${"x".repeat(16_000_000)}`;
    await expect(read(readLines, long, 100_000)).rejects.toMatchObject({
      code: "payload_too_large",
      message: "line 2 has more than 16000000 bytes (maxImportLineBytes).",
    });
  });

  test("[S4] an empty line is refused by its number", async () => {
    await expect(read(readLines, `${lines[0]}\n\n${lines[1]}`)).rejects.toMatchObject({
      code: "invalid_json",
      message: "In the body: line 2 is not JSON in UTF-8, or was cut off.",
    });
  });
});

describe("a document of version 1", () => {
  const document = {
    ...{ format: "colloquy.agent", version: 1, exportedAt },
    agent: { id, config: { name: 'A "quoted" \\ name ] } , :' }, goals: [], memories: memories.slice(0, 2) },
  };
  const text = JSON.stringify(document);

  test("[S4] cut anywhere is refused, and so is what follows its end", async () => {
    for (let length = 0; length < text.length; length += 1) {
      await expect(read(readVersion1, text.slice(0, length)), String(length)).rejects.toMatchObject({
        code: "invalid_json",
      });
    }
    for (const wrong of [`${text}}`, `${text}x`, `${text}{}`]) {
      await expect(read(readVersion1, wrong), wrong.slice(-2)).rejects.toMatchObject({ code: "invalid_json" });
    }
  });

  test.each(["{,}", '{"format":"\n"}', '{"agent":{"id":nul}}'])(
    "[S4] what is no JSON is refused: %s",
    async (wrong) => {
      await expect(read(readVersion1, wrong, 1)).rejects.toMatchObject({ code: "invalid_json" });
    },
  );

  test.each([
    ["a field that nobody knows", "more", `{"more":1,${text.slice(1)}`],
    ["a field of the agent that nobody knows", "agent.more", text.replace('"agent":{', '"agent":{"more":1,')],
    ["a name of every object's own", "constructor", `{"constructor":1,${text.slice(1)}`],
    ["a prototype", "__proto__", `{"__proto__":1,${text.slice(1)}`],
    ["a prototype of the agent", "agent.__proto__", text.replace('"agent":{', '"agent":{"__proto__":[1],')],
    ["a prototype in a row", "agent.memories.0", text.replace('"key"', '"__proto__":{},"key"')],
    ["a list that is none", "agent.goals", text.replace('"goals":[]', '"goals":{}')],
    ["an agent that is none", "agent", JSON.stringify({ ...document, agent: [] })],
    ["a later version", "version", text.replace('"version":1', '"version":2')],
    ["a row that does not fit", "agent.memories.1.value", text.replace(/"ü"(?!.*"ü")/, "7")],
    ["nesting without end", "", text.replace('"config":{', `"config":{"a":${"[".repeat(200)}${"]".repeat(200)},`)],
  ])("[S4] is refused with its place: %s", async (_, path, wrong) => {
    await expect(read(readVersion1, wrong)).rejects.toMatchObject({
      code: "invalid_request",
      issues: [{ path: expect.stringContaining(path) }],
    });
  });

  test.each(["7", "[1]", "null"])("another value is refused: %s", async (wrong) => {
    await expect(read(readVersion1, wrong)).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("[B3] a value longer than maxImportLineBytes is refused while it arrives", async () => {
    const long = text.replace('"config":{', `"config":{"a":"${"x".repeat(17_000_000)}`);
    await expect(read(readVersion1, long, 100_000)).rejects.toMatchObject({ code: "payload_too_large" });
  });
});
