import { randomBytes } from "node:crypto";
import { globSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { ApiError } from "../../scripts/api.ts";
import type { House, Person } from "../e2e/support/house.ts";
import type { Random } from "./random.ts";

/**
 * Messages are deleted and a visitor of each space is signed out, while others speak and the power goes. At the end the
 * words are on no disk, the tokens open nothing, and nothing else is gone.
 */
export type Note = { text: string; id: string; isDeleted: boolean };

const notesEach = 4;
const againMs = 100;
/** Longer than any restart: what is not answered by then never is. */
const insistMs = 120_000;

/** Until it is answered: who deletes something and hears nothing asks again. */
export const insist = async <T>(ask: () => Promise<T>): Promise<T> => {
  const until = performance.now() + insistMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > until || (error instanceof ApiError && error.status < 500)) throw error;
      await wait(againMs);
    }
  }
};

/** The visitor writes notes, which are for nobody, deletes some of them, and is signed out by the workspace's key. */
export const visit = async (
  house: House,
  { spaceId, visitor, random, windowMs }: { spaceId: string; visitor: Person; random: Random; windowMs: number },
): Promise<Note[]> => {
  const notes: Note[] = [];
  const plan = Array.from({ length: notesEach }, () => ({
    pauseMs: random.between(0, windowMs / notesEach),
    isDeleted: random.chance(0.7),
    deletedMs: random.between(0, windowMs / notesEach),
  }));
  for (const { pauseMs, isDeleted, deletedMs } of plan) {
    await wait(pauseMs);
    const text = `note${randomBytes(9).toString("hex")}`;
    const clientKey = randomBytes(9).toString("hex");
    const messages = `/v1/spaces/${spaceId}/messages`;
    const { message } = await insist(() =>
      visitor.api.post<{ message: { id: string } }>(messages, { text, clientKey }),
    );
    if (isDeleted) {
      await wait(deletedMs);
      await insist(() => visitor.api.delete(`${messages}/${message.id}`));
    }
    notes.push({ text, id: message.id, isDeleted });
  }
  await insist(() => house.api.post(`/v1/entities/${visitor.id}/sign-out`).catch(unlessEmpty));
  return notes;
};

/** The answer of a sign-out has no body. */
const unlessEmpty = (error: unknown): void => {
  if (!(error instanceof SyntaxError)) throw error;
};

/** What the visitor's token gets now. */
export const statusOf = async (house: House, { token }: Person): Promise<number> =>
  insist(async () => {
    const { status } = await fetch(`${house.url}/v1/spaces`, { headers: { authorization: `Bearer ${token}` } });
    if (status >= 500) throw new Error("it is asked again");
    return status;
  });

const textOf = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);

/** Where one of the words still is: in any row of any object. */
const wordsLeftOver = (dataDirectory: string, words: string[]): string[] =>
  globSync("v3/do/*/*.sqlite", { cwd: dataDirectory }).flatMap((file) => {
    const db = new DatabaseSync(join(dataDirectory, file), { readOnly: true });
    try {
      const tables = db.prepare("select name from sqlite_master where type = 'table'").all();
      return tables.flatMap(({ name }) => {
        const all = db.prepare(`select * from "${String(name)}"`);
        all.setReadBigInts(true);
        const rows = all.all();
        const texts = rows.map((row) => Object.values(row).map(textOf).join(" "));
        const found = words.filter((word) => texts.some((text) => text.includes(word)));
        return found.map((word) => `${word} in ${String(name)} of ${file}`);
      });
    } finally {
      db.close();
    }
  });

const looks = 6;
const betweenLooksMs = 4000;

/** The same of a house, which is down then: no file can be read while it runs. What still forgets has time between two looks. */
export const wordsStillThere = async (house: House, words: string[]): Promise<string[]> => {
  for (let look = 1; ; look += 1) {
    await house.kill();
    const found = wordsLeftOver(house.dataDirectory, words);
    if (found.length === 0 || look === looks) return found;
    await house.start();
    await wait(betweenLooksMs);
  }
};
