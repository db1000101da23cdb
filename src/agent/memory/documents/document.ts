import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema } from "../../../protocol/block-schema.ts";
import { loadedOnce } from "../../../shared/loaded-once.ts";
import { contentOf } from "./cells.ts";

/**
 * Opening and keeping documents.
 *
 * Invariants
 * 1. One object writes a document, always as the same peer. Whatever it has written must be stored before anybody is
 *    told of it. Else the document must be dropped and opened again from what is stored.
 * 2. A fork gets a peer of its own, so that no two changes ever have one name.
 */
const writer = "1";

/** The CRDT library: the module itself, once its WebAssembly has been started. */
export type Loro = typeof import("loro-crdt/web");

/** Loads it with the first document: 1.2 MB that nothing pays for until then. */
export const loadLoro = loadedOnce(async (): Promise<Loro> => {
  const [loro, { default: module }] = await Promise.all([
    import("loro-crdt/web"),
    import("loro-crdt/web/loro_wasm_bg.wasm"),
  ]);
  loro.initSync({ module });
  return loro;
});

/**
 * The document that a snapshot and later updates make, in the order in which they were stored. Throws where something is
 * missing that they build on.
 */
export const openDocument = ({ LoroDoc }: Loro, updates: Uint8Array[], snapshot?: Uint8Array): LoroDoc => {
  const doc = new LoroDoc();
  // By itself: in a batch, a snapshot without the oldest of its history is lost.
  const imported = snapshot ? [doc.import(snapshot)] : [];
  // Together: so a counter's fractions add up as they were counted. A version that changed nothing has no bytes.
  const changes = updates.filter(({ length }) => length > 0);
  if (changes.length > 0) imported.push(doc.importBatch(changes));
  if (imported.some(({ pending }) => pending && pending.size > 0)) {
    throw new Error("changes that it builds on are missing");
  }
  doc.setPeerId(writer);
  return doc;
};

/** The same of bytes that were written elsewhere. Throws where one of them is damaged. */
export const openForeignDocument = (loro: Loro, updates: Uint8Array[], snapshot?: Uint8Array): LoroDoc => {
  for (const bytes of snapshot ? [snapshot, ...updates] : updates) loro.decodeImportBlobMeta(bytes, true);
  return openDocument(loro, updates, snapshot);
};

/** Whether a document has been in this state, and can go back to it. */
export const hasState = (doc: LoroDoc, state: string): boolean => {
  try {
    doc.frontiersToVV(frontiersOf(state)).free();
    return true;
  } catch {
    return false;
  }
};

/** A state of a document, as text: what `contentAt` and forks go back to. */
export const stateOf = (doc: LoroDoc): string => JSON.stringify(doc.frontiers());

type Frontiers = ReturnType<LoroDoc["frontiers"]>;
const frontiersOf = (state: string): Frontiers => JSON.parse(state) as Frontiers;

/** Reads the document as it was. */
export const atState = <T>(doc: LoroDoc, state: string, read: () => T): T => {
  if (state === stateOf(doc)) return read();
  doc.checkout(frontiersOf(state));
  try {
    return read();
  } finally {
    doc.checkoutToLatest();
  }
};

/** The content at that state, as data. */
export const contentAt = (doc: LoroDoc, schema: BlockSchema, state: string): Json =>
  atState(doc, state, () => contentOf(doc, schema));

/** A copy of the document as it was, to be edited: what is changed in it can be imported into the document. */
export const forkOf = (doc: LoroDoc, state: string): LoroDoc => {
  // `forkAt` knows no documents without the oldest of their history.
  const fork = doc.fork();
  fork.setDetachedEditing(true);
  fork.checkout(frontiersOf(state));
  return fork;
};

/** Imports what was changed in a fork. Closes the fork. */
export const mergeInto = (doc: LoroDoc, fork: LoroDoc): void => {
  fork.commit();
  const known = doc.version();
  doc.import(fork.export({ mode: "update", from: known }));
  known.free();
  fork.free();
};

/** All of it, with its whole history, or with that from a state on only. */
export const snapshotOf = (doc: LoroDoc, from?: string): Uint8Array =>
  doc.export(from === undefined ? { mode: "snapshot" } : { mode: "shallow-snapshot", frontiers: frontiersOf(from) });

/** The changes since a state, as they are stored: no bytes where there are none. */
export const changesSince = (doc: LoroDoc, state: string): Uint8Array => {
  if (state === stateOf(doc)) return new Uint8Array();
  const from = doc.frontiersToVV(frontiersOf(state));
  const update = doc.export({ mode: "update", from });
  from.free();
  return update;
};
