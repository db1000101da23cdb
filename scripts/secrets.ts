import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { type NamedSecret, parseRing, type RingEnv } from "../src/shared/secret-ring.ts";
import { type Api, ApiError } from "./api.ts";

/** What a deployment tells of its secrets (`GET /healthz`). */
export type Prints = { ring: string[]; ids: string };

/** The variables of a file such as `.dev.vars`. */
export const readVariables = (path: string): Record<string, string> => {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  // Blanks behind an empty variable would make Node's parser give it the next line.
  const pairs = Object.entries(parseEnv(text.replace(/[^\S\n]+$/gm, "")));
  return Object.fromEntries(pairs.map(([name, value = ""]) => [name, value]));
};

/** Sets one variable, in one step: whoever is cut off leaves the file of before. */
export const writeVariable = (path: string, name: string, value: string): void => {
  const lines = existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
  const others = lines.filter((line) => !new RegExp(`^\\s*${name}\\s*=`).test(line));
  writeFileSync(`${path}.new`, `${[...others, `${name}=${value}`].join("\n")}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
};

const entriesOf = (all: string | undefined): string[] => (all ?? "").split(",").flatMap((entry) => entry.trim() || []);

/** An entry that names the deployment's own SIGNING_SECRET, which a file need not hold. */
const namesOldest = (entry: string): boolean => entry.endsWith(":SIGNING_SECRET");

/** The ring that a file holds; undefined where it holds none. Throws what is wrong with it. */
const ringIn = ({ SIGNING_SECRET: one, SIGNING_SECRETS: all }: RingEnv) => {
  const entries = entriesOf(all).filter((entry) => one || !namesOldest(entry));
  return one || entries.length > 0 ? parseRing({ SIGNING_SECRET: one, SIGNING_SECRETS: entries.join(",") }) : undefined;
};

/** The next step of a rotation. It follows from the file and the deployment alone, so a cut rotation goes on. */
export type Step =
  | { step: "add"; value: string }
  | { step: "put" }
  | { step: "reseal"; value: string; leaving: string[] }
  | { step: "refuse"; why: string };

export const nextStep = (variables: RingEnv, live: Prints, newSecret: { name: string; secret: string }): Step => {
  const ring = ringIn(variables);
  const known: NamedSecret[] = ring ? [...ring.secrets, ring.ids] : [];
  const isKnown = (print: string): boolean => known.some((each) => each.print === print);
  // The deployment's SIGNING_SECRET may be known to nobody: it was put there and is there still.
  const unknown = live.ring.filter((print) => !isKnown(print) && print !== live.ids);
  if (unknown.length > 0) {
    const why = `The deployment's ring has secrets that this file does not hold (${unknown.join(", ")}): put what SIGNING_SECRETS holds there into it first.`;
    return { step: "refuse", why };
  }
  // Only the deployment knows whether it has a SIGNING_SECRET: one that the file lacks stays.
  const lost = orphanedBy(variables, live, { hasOldest: true, isDone: true });
  if (lost !== undefined) return { step: "refuse", why: lost };
  const entries = entriesOf(variables.SIGNING_SECRETS);
  const [first] = live.ring;
  const isEnded = entries.some((entry) => entry.startsWith("ids:")) && ring?.secrets.length === 1;
  const isAhead = ring?.first.print !== first || (isEnded && live.ring.length > 1);
  if (entries.length > 0 && isAhead) return { step: "put" };
  if (live.ring.length < 2) {
    const named = (name: string): boolean => entries.some((entry) => entry.startsWith(`${name}:`));
    let { name } = newSecret;
    for (let count = 2; named(name); count += 1) name = `${newSecret.name}-${count}`;
    return { step: "add", value: [`${name}:${newSecret.secret}`, ...entries].join(",") };
  }
  const kept = known.find(({ print }) => print === first);
  if (!kept) return { step: "refuse", why: "The file does not hold the secret that signs there." };
  const ofIds = known.find(({ print }) => print === live.ids);
  const isOldest = !ofIds || ofIds.secret === variables.SIGNING_SECRET;
  const value = `${kept.name}:${kept.secret},ids:${isOldest ? "SIGNING_SECRET" : ofIds.secret}`;
  return { step: "reseal", value, leaving: live.ring.slice(1) };
};

/**
 * Why what this file holds must not go out to that deployment; undefined where nothing is lost by it. `hasOldest`: it has a
 * SIGNING_SECRET, which stays where the file has none. `isDone`: all that is stored there is sealed by its first secret.
 */
export const orphanedBy = (
  variables: RingEnv,
  live: Prints | undefined,
  { hasOldest, isDone }: { hasOldest: boolean; isDone: boolean },
): string | undefined => {
  const ring = ringIn(variables);
  if (!ring) {
    const isThere = (variables.SIGNING_SECRET ?? variables.SIGNING_SECRETS) !== undefined;
    const why =
      "SIGNING_SECRET or SIGNING_SECRETS holds no secret in the file, and would replace the deployment's: take that line out.";
    return isThere ? why : undefined;
  }
  if (!live) {
    return "Its release tells no prints of its secrets. Take SIGNING_SECRET and SIGNING_SECRETS out of the file for this deployment: it keeps its own.";
  }
  const isHidden = variables.SIGNING_SECRET === undefined && hasOldest;
  const entries = entriesOf(variables.SIGNING_SECRETS);
  const idsOnly = entries.includes("ids:SIGNING_SECRET");
  const ids = isHidden && ring.ids.name !== "ids" ? live.ids : ring.ids.print;
  if (ids !== live.ids) {
    return `Every id there was made with the secret of print ${live.ids}, and would be unknown. Put that one back as SIGNING_SECRET (a new secret goes into SIGNING_SECRETS: npm run rotate), or deploy under another name.`;
  }
  const known = [...ring.secrets.map(({ print }) => print), ...(isHidden && !idsOnly ? [live.ids] : [])];
  const going = live.ring.filter((print) => !known.includes(print));
  if (going.length === 0) return undefined;
  const [first = ""] = live.ring;
  if (isDone && !going.includes(first)) return undefined;
  return `What is sealed by the secret of print ${going.join(", ")} could not be opened any more. Put it back into SIGNING_SECRETS behind the new one, then: npm run rotate`;
};

export type Resealing = { state: "needed" | "running" | "done"; hanging: unknown; unopened: string[]; agents: number };

/** The deployment's workspaces: those that it lists, if it has a list, and those that are named beside them. */
export const workspacesOf = async (operator: Api, named: string[]): Promise<string[]> => {
  const ids: string[] = [...named];
  for (let cursor = ""; ; ) {
    const asked = operator.get<{ items: { id: string; deletedAt?: string }[]; nextCursor: string | null }>(
      `/v1/operator/workspaces?limit=100${cursor && `&cursor=${cursor}`}`,
    );
    const page = await asked.catch((error: unknown) => {
      if (named.length > 0 && error instanceof ApiError && error.status === 404) return { items: [], nextCursor: null };
      throw error;
    });
    ids.push(...page.items.flatMap(({ id, deletedAt }) => (deletedAt === undefined ? id : [])));
    if (page.nextCursor === null) return [...new Set(ids)];
    cursor = page.nextCursor;
  }
};

/**
 * A workspace that the deployment lists but no longer knows: its ids were made by an earlier SIGNING_SECRET, replaced
 * by hand. The list says nothing by which it could tell before there is a workspace.
 */
export const orphanOf = async (operator: Api): Promise<string | undefined> => {
  const [id] = await workspacesOf(operator, []).catch(() => []);
  if (id === undefined) return undefined;
  const isKnown = await operator.get(`/v1/operator/workspaces/${id}`).then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && [400, 404].includes(error.status)),
  );
  return isKnown ? undefined : id;
};

/** Has each workspace sealed anew, or only asks. Answers those that are not done. */
export const resealAll = async (
  operator: Api,
  workspaces: string[],
  {
    asks,
    told,
    pauseMs = 500,
  }: { asks?: boolean; told?: (id: string, state: Resealing) => void; pauseMs?: number } = {},
): Promise<string[]> => {
  const left: string[] = [];
  for (const id of workspaces) {
    const path = `/v1/operator/workspaces/${id}/reseal`;
    let state = asks ? await operator.get<Resealing>(path) : await operator.post<Resealing>(path);
    while (!asks && state.state === "running") {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      state = await operator.get<Resealing>(path);
    }
    told?.(id, state);
    if (state.state !== "done") left.push(id);
  }
  return left;
};
