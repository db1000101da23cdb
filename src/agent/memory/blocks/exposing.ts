import type { BlockGrant, Exposure } from "../../../protocol/agent-rpc.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { quote } from "../../../shared/quote.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { ranks } from "../documents/permission.ts";

export type Grant = Omit<BlockGrant, "createdAt">;

/** A grant by which more may be written than by the one before it. */
export const widens = ({ permission }: Grant, before?: Grant): boolean =>
  ranks[permission] > ranks[before?.permission ?? "ReadOnly"];

type Asked = {
  label: string;
  /** The grants by which confidential spaces begin to write the block, as it is now. */
  granted: () => Grant[];
  /** The confidential spaces that the caller reads; left out: all. */
  readable: string[] | undefined;
  /** The confidential spaces of a grantee. */
  spacesOf: (granteeId: string) => string[] | Promise<string[]>;
};

/**
 * All readers of a block read each edit. So only a caller who reads a confidential space may let it write a
 * block (C19). Other callers are answered with what they would expose, and nothing is done. `act` calls its `check` in
 * the turn in which it writes, since blocks and shares may change while others are asked.
 */
export const asReader = async <T>(
  { label, granted, readable, spacesOf }: Asked,
  act: (check: () => void) => Promise<T>,
): Promise<T | Exposure> => {
  if (readable === undefined) return act(() => undefined);
  const asked = granted();
  const found = await Promise.all(asked.map(({ granteeId }) => spacesOf(granteeId)));
  const spaces = [...new Set(found.flat())];
  if (spaces.some((id) => !readable.includes(id))) return { spaces, fields: [`the block ${quote(label)}`] };
  return act(() => {
    if (sameJson(asked, granted())) return;
    throw new ColloquyError("conflict", `"${label}" or its shares changed meanwhile: send this again`);
  });
};

/** Whether it says what was not done, and why. */
export const isExposure = (answer: object | undefined): answer is Exposure =>
  answer !== undefined && "fields" in answer;
