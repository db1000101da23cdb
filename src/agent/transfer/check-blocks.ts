import { asc, eq } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import { z } from "zod";
import { maxBlockCharacters } from "../../protocol/block-schema.ts";
import type { Database } from "../../shared/database.ts";
import { unsoundness } from "../../shared/sound-json.ts";
import { maxForeignReads } from "../bounds.ts";
import { createBlockHistory } from "../memory/blocks/block-history.ts";
import { blocks, blockVersions } from "../memory/blocks/schema.ts";
import { checkBlockSchema, sizeOf } from "../memory/documents/check-content.ts";
import { contentAt, hasState, stateOf } from "../memory/documents/document.ts";
import { loadLoro } from "../memory/documents/loro.ts";
import { render } from "../memory/documents/render.ts";
import { unfit } from "./check-history.ts";

/** Checks the blocks of an import, with one document in memory at a time. */
type BlockRow = typeof blocks.$inferSelect;
type VersionRow = { version: number; state: string };

const State = z.array(z.strictObject({ peer: z.string().regex(/^\d{1,20}$/), counter: z.int().min(0) }));

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 200);

/** The changes that a state names, sorted. Undefined where the text is no state. */
const headsOf = (state: string): string | undefined => {
  try {
    return State.parse(JSON.parse(state))
      .map(({ peer, counter }) => `${peer}:${counter}`)
      .sort()
      .join();
  } catch {
    return undefined;
  }
};

/** The versions to read: all where they are few, else the oldest and the newest, since reading an old one is slow. */
const readVersions = (versions: VersionRow[]): VersionRow[] =>
  versions.length <= maxForeignReads
    ? versions
    : [...versions.slice(0, maxForeignReads / 2), ...versions.slice(-maxForeignReads / 2)];

const checkVersions = ({ version, snapshotVersion }: BlockRow, versions: VersionRow[], doc: LoroDoc): void => {
  const [first] = versions;
  const isInOrder = versions.every((each, index) => each.version === (first?.version ?? 0) + index);
  if (!isInOrder || versions.at(-1)?.version !== version) {
    throw new Error(`its versions must follow each other, up to ${version}`);
  }
  if (snapshotVersion > version) throw new Error("its snapshot is newer than its newest version");
  for (const { version: each, state } of versions) {
    if (headsOf(state) === undefined || !hasState(doc, state))
      throw new Error(`its document never was at version ${each}`);
  }
  if (headsOf(versions.at(-1)?.state ?? "") !== headsOf(stateOf(doc))) {
    throw new Error("its document holds more than its newest version");
  }
};

/** The text that a block shows. Throws what is wrong with the block. */
const renderedOf = (block: BlockRow, versions: VersionRow[], doc: LoroDoc): string => {
  const { schema } = block;
  checkBlockSchema(schema);
  checkVersions(block, versions, doc);
  for (const { state } of readVersions(versions)) {
    const value = contentAt(doc, schema, state);
    const issue = unsoundness(value);
    if (issue) throw new Error(`what it holds ${issue.message}`);
    // A block's limit may have been lowered since; no content is larger than the largest limit.
    if (sizeOf(schema, value) > 2 * maxBlockCharacters)
      throw new Error(`it holds more than maxBlockCharacters (${maxBlockCharacters})`);
  }
  return render(schema, contentAt(doc, schema, stateOf(doc)));
};

/** Lets other work of this object have its turn. */
const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** Opens every document and stores what it shows. Throws `invalid_request` with the block that is wrong. */
export const checkBlocks = async (db: Database): Promise<void> => {
  const all = db.select().from(blocks).orderBy(asc(blocks.id)).all();
  if (all.length === 0) return;
  const loro = await loadLoro();
  const history = createBlockHistory(db);
  for (const block of all) {
    const versions = db
      .select({ version: blockVersions.version, state: blockVersions.state })
      .from(blockVersions)
      .where(eq(blockVersions.blockId, block.id))
      .orderBy(asc(blockVersions.version))
      .all();
    let doc: LoroDoc | undefined;
    try {
      doc = history.openForeign(loro, block.id);
      const rendered = renderedOf(block, versions, doc);
      db.update(blocks).set({ rendered }).where(eq(blocks.id, block.id)).run();
    } catch (error) {
      throw unfit(`block ${block.label}`, `cannot be taken: ${wordsOf(error)}`);
    } finally {
      doc?.free();
    }
    await breathe();
  }
};
