import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { DocumentReader, maxImportBytes } from "../../../src/routes/transfer/import-reader.ts";

const id = `ent_${"0".repeat(34)}`;
const memories = Array.from({ length: 1200 }, (_, index) => ({
  key: `k${index}`,
  value: "ü",
  updatedAt: "2026-02-18T15:00:00.000Z",
}));
const document = {
  ...{ format: "colloquy.agent", version: 1, exportedAt: "2026-02-18T15:00:00.000Z" },
  agent: { id, config: { name: "Analyst" }, memories },
};
const bytes = new TextEncoder().encode(JSON.stringify(document));

const inPieces = (all: Uint8Array, size: number): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < all.length; at += size) controller.enqueue(all.slice(at, at + size));
      controller.close();
    },
  });

const read = async (all: Uint8Array, size: number, maxBytes = maxImportBytes) => {
  const hash = createHash("sha256");
  const reader = new DocumentReader(hash, maxBytes);
  const lengths: number[] = [];
  for await (const page of reader.pages(inPieces(all, size))) lengths.push(page.memories?.length ?? 0);
  return { lengths, ...reader.document, sha256: hash.digest("hex") };
};

describe("an exported agent that arrives", () => {
  test.each([1, 3, 1000, 1_000_000])("is handed on in pages, whatever its pieces: %i bytes", async (size) => {
    const { lengths, head, envelope, sha256 } = await read(bytes, size);
    expect(lengths).toEqual([500, 500, 200]);
    expect(head).toMatchObject({ id, config: { name: "Analyst", continuity: "consciousness" } });
    expect(envelope.version).toBe(1);
    expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
  });

  test("[B3] is refused beyond maxImportBytes, as soon as it is", async () => {
    await expect(read(bytes, 100, bytes.length)).resolves.toBeDefined();
    await expect(read(bytes, 100, bytes.length - 1)).rejects.toMatchObject({
      code: "payload_too_large",
      message: `An import holds at most ${bytes.length - 1} bytes (maxImportBytes).`,
    });
  });

  test("[S4] is refused where it is no UTF-8, or ends within a character", async () => {
    const broken = Uint8Array.from(bytes);
    const at = broken.indexOf(0xc3);
    broken[at + 1] = 0x20;
    await expect(read(broken, 1000)).rejects.toMatchObject({ code: "invalid_json" });
    await expect(read(bytes.slice(0, at + 1), 1000)).rejects.toMatchObject({ code: "invalid_json" });
    await expect(read(new Uint8Array(), 1000)).rejects.toMatchObject({ code: "invalid_json" });
  });

  test("[S4] a sender that goes away is a document that ends in the middle", async () => {
    const cut = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, 100));
      },
      pull(controller) {
        controller.error(new Error("gone"));
      },
    });
    const pages = new DocumentReader(createHash("sha256")).pages(cut);
    await expect(pages.next()).rejects.toMatchObject({ code: "invalid_json" });
  });
});
