import { expect, test } from "vitest";
import { histories } from "../../migrations/histories.ts";
import type { AuditAction } from "../../src/protocol/audit.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { createTimers } from "../../src/timers/timers.ts";
import { auditTimer, createAudit } from "../../src/workspace/audit.ts";
import { withStorage } from "./fixture.ts";

const dayMs = 24 * 60 * 60_000;

/** A log alone, on real storage, of 200 entries and ten days. */
const withLog = (act: (staged: Awaited<ReturnType<typeof stage>>) => void): Promise<void> =>
  withStorage(async (storage) => act(await stage(storage)));

const stage = async (storage: DurableObjectStorage) => {
  const db = openDatabase(storage);
  await createSchema(db, histories.workspace);
  const time = { now: Date.now() };
  const timers = createTimers(db, storage, { now: () => time.now });
  const audit = createAudit(db, { now: () => time.now }, timers, { entries: 200, ageMs: 10 * dayMs });
  const note = (action: AuditAction, target: string, once?: string): void =>
    audit.note({ action, actor: { id: "key_1" }, target, ...(once !== undefined && { once }) });
  const targets = (): string[] => audit.page({ limit: 500 }).items.map(({ target }) => target);
  return { db, time, timers, audit, note, targets };
};

test("[L3] a full audit log loses its oldest entries, and a note says how many", () =>
  withLog(({ audit, note, targets }) => {
    for (let index = 0; index <= 200; index += 1) note("secret.put", `T${index}`);
    expect(targets()).toEqual(["audit", ...Array.from({ length: 199 }, (_, index) => `T${200 - index}`)]);
    expect(audit.page({ limit: 1 }).items).toMatchObject([
      { action: "audit.pruned", actor: { id: "workspace" }, detail: { entries: 2 } },
    ]);
  }));

test("[L3] what is done again and again washes no other act out of the audit log", () =>
  withLog(({ note, targets }) => {
    note("key.created", "kept");
    for (let index = 0; index < 500; index += 1) note(index % 2 ? "token.minted" : "space.read", `T${index}`);
    expect(targets()).toContain("kept");
    expect(targets().length).toBeLessThanOrEqual(200);
  }));

test("[L3] an entry leaves the audit log by its age, although nothing more is noted", () =>
  withLog(({ audit, time, timers, note, targets }) => {
    note("key.created", "old");
    expect(timers.dueAt(auditTimer)).toBe(time.now + 10 * dayMs);
    time.now += 9 * dayMs;
    note("key.created", "new");
    time.now += dayMs;
    audit.onTimer();
    expect(targets()).toEqual(["audit", "new"]);
    expect(timers.dueAt(auditTimer)).toBe(time.now + 9 * dayMs);
  }));

test("[L3] a note that its transaction takes back is not there, and one of a name is there once", () =>
  withLog(({ db, note, targets }) => {
    const failing = () =>
      db.transaction(() => {
        note("key.created", "never");
        throw new Error("crash");
      });
    expect(failing).toThrow("crash");
    for (let index = 0; index < 9; index += 1) note("key.created", "once", "one name");
    expect(targets()).toEqual(["once"]);
  }));
