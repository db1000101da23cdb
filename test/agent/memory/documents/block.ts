import { contentOf } from "../../../../src/agent/memory/documents/cells.ts";
import { checkBlockSchema } from "../../../../src/agent/memory/documents/check-content.ts";
import { openDocument } from "../../../../src/agent/memory/documents/document.ts";
import { editDocument, type Step } from "../../../../src/agent/memory/documents/edit-document.ts";
import type { Writer } from "../../../../src/agent/memory/documents/permission.ts";
import { render } from "../../../../src/agent/memory/documents/render.ts";
import type { Json, Permission } from "../../../../src/protocol/block.ts";
import { BlockOperations, type OperationResult } from "../../../../src/protocol/block-operation.ts";
import { BlockSchema } from "../../../../src/protocol/block-schema.ts";
import { nodeLoro } from "../../../support/node/loro.ts";

/** A block without a database: its document, and its versions as a list. A refused edit throws and changes nothing. */

const loro = nodeLoro();
const now = "2026-02-18T15:00:00.000Z";

export const system: Writer = { kind: "system", now };
export const agent = (permission: Permission, consented = false): Writer => ({
  kind: "agent",
  now,
  name: "Analyst",
  permission,
  consented,
});

type Kept = Step & { author: string; state: string; update: Uint8Array };

export const block = (schema: unknown, { content, charLimit = 5000 }: { content?: Json; charLimit?: number } = {}) => {
  let parsed = BlockSchema.parse(schema);
  checkBlockSchema(parsed);
  let doc = openDocument(loro, []);
  const created = editDocument(doc, {
    ...{ schema: parsed, charLimit, label: "notes", writer: system, version: 0, content, operations: [] },
    ...{ steps: () => [], stateAt: () => undefined },
  });
  const versions: Kept[] = created.commits.map((commit) => ({ ...commit, author: "nobody" }));
  const stateAt = (version: number) => versions.find((kept) => kept.version === version)?.state;
  const self = {
    versions,
    value: (): Json => contentOf(doc, parsed),
    rendered: (): string => render(parsed, contentOf(doc, parsed)),
    version: (): number => versions.at(-1)?.version ?? 0,
    /** Reopens the document from what is stored, which makes the same one. */
    reopened: (): Json =>
      contentOf(
        openDocument(
          loro,
          versions.map(({ update }) => update),
        ),
        parsed,
      ),
    /** The same with another schema. */
    with(next: unknown) {
      parsed = BlockSchema.parse(next);
      return self;
    },
    edit(
      operations: unknown,
      { by = system, author = "someone", on }: { by?: Writer; author?: string; on?: number } = {},
    ): OperationResult[] {
      try {
        const { commits, results } = editDocument(doc, {
          ...{ schema: parsed, charLimit, label: "notes", writer: by, version: self.version(), stateAt },
          operations: BlockOperations.parse(Array.isArray(operations) ? operations : [operations]),
          on: on === undefined ? undefined : stateAt(on),
          steps: () => versions.filter((kept) => kept.author === author),
        });
        versions.push(...commits.map((commit) => ({ ...commit, author })));
        return results;
      } catch (error) {
        doc = openDocument(
          loro,
          versions.map(({ update }) => update),
        );
        throw error;
      }
    },
  };
  return self;
};
