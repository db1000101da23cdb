import { expect, onTestFinished, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import type { ActorNamespace } from "../../src/env/env.ts";
import type { AgentRpc } from "../../src/protocol/agent-rpc.ts";
import type { PersonRpc } from "../../src/protocol/person-rpc.ts";
import type { SpaceRpc } from "../../src/protocol/rpc.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { ok, refuse } from "../../src/shared/errors.ts";
import { createJobs, jobsTimer } from "../../src/timers/jobs.ts";
import { createTimers } from "../../src/timers/timers.ts";
import { maxTellsAtOnce, tellTimeoutMs } from "../../src/workspace/bounds.ts";
import { createDirectory } from "../../src/workspace/directory.ts";
import { createOutbox } from "../../src/workspace/outbox.ts";
import { createSecrets } from "../../src/workspace/secrets.ts";
import { createSpaceIndex } from "../../src/workspace/space-index.ts";
import { createGate } from "../support/gate.ts";
import { delivery, ids, withStorage } from "./fixture.ts";

const workspaceId = ids.mint("wsp");
const [mona, robot, alpha, beta] = [ids.mint("ent"), ids.mint("ent"), ids.mint("spc"), ids.mint("spc")];

/** The outbox alone, on real storage, telling spaces and agents that the test stands in for. */
const withOutbox = (act: (staged: Awaited<ReturnType<typeof stage>>) => Promise<void>): Promise<void> =>
  withStorage(async (storage) => act(await stage(storage)));

const stage = async (storage: DurableObjectStorage) => {
  const db = openDatabase(storage);
  await createSchema(db, histories.workspace);
  const time = { now: Date.now() };
  const clock = { now: () => time.now };
  const told = {
    renameMember: vi.fn<SpaceRpc["renameMember"]>().mockResolvedValue(ok(null)),
    removeMember: vi.fn<SpaceRpc["removeMember"]>().mockResolvedValue(ok(null)),
    remove: vi.fn<AgentRpc["remove"]>().mockResolvedValue(ok(null)),
    setSecrets: vi.fn<AgentRpc["setSecrets"]>().mockResolvedValue(ok(null)),
    isImporting: vi.fn<AgentRpc["isImporting"]>().mockResolvedValue(ok(false)),
    setRetention: vi.fn<SpaceRpc["setRetention"]>().mockResolvedValue(ok(null)),
    proveAgain: vi.fn<SpaceRpc["proveAgain"]>().mockResolvedValue(ok(null)),
  };
  const toldPerson = {
    joined: vi.fn<PersonRpc["joined"]>().mockResolvedValue(ok(null)),
    proveAgain: vi.fn<PersonRpc["proveAgain"]>().mockResolvedValue(ok(null)),
    remove: vi.fn<PersonRpc["remove"]>().mockResolvedValue(ok(null)),
  };
  const asked: string[] = [];
  const named = <Rpc>(methods: object): ActorNamespace<Rpc> => ({
    getByName: (name) => {
      asked.push(name);
      return methods as Rpc & { fetch(request: Request): Promise<Response> };
    },
    idFromName: (name) => `id of ${name}`,
  });
  const directory = createDirectory(
    db,
    clock,
    () => undefined,
    (hash) => `keyed ${hash}`,
  );
  const spaces = createSpaceIndex(db, clock, () => undefined);
  const timers = createTimers(db, storage, clock);
  const secrets = createSecrets(db, clock);
  const background: Promise<void>[] = [];
  const jobs = createJobs({ db, timers, clock, waitUntil: (work) => void background.push(work) });
  const outbox = createOutbox({
    env: { SPACE: named<SpaceRpc>(told), AGENT: named<AgentRpc>(told), PERSON: named<PersonRpc>(toldPerson) },
    ids: () => ids,
    db,
    directory,
    secrets,
    spaces,
    endpoints: { ids: () => [], tell: async () => ok(null), following: () => ({ version: 0, endpoints: [] }) },
    jobs,
    clock,
    isMetered: () => false,
    retentionDays: () => null,
    workspaceId: () => workspaceId,
    isSuspended: () => false,
    object: { abort: () => undefined, storage: { sync: () => Promise.resolve() } },
  });
  directory.create(mona, { type: "human", name: "Mona", role: "member" });
  directory.create(robot, { type: "agent", name: "Robot", role: "member" });
  for (const spaceId of [alpha, beta]) spaces.follow(delivery(workspaceId, spaceId, 1, { [mona]: "Mona" }));
  const settled = async (): Promise<void> => {
    while (background.length > 0) await Promise.all(background.splice(0));
  };
  const alarm = (): Promise<void> => {
    jobs.onTimer();
    return settled();
  };
  const waits = (): boolean => timers.dueAt(jobsTimer) !== undefined;
  return { outbox, directory, secrets, spaces, timers, told, asked, time, settled, alarm, waits };
};

test("a new name is told to every space of the entity at once", () =>
  withOutbox(async ({ outbox, directory, told, asked, settled, waits }) => {
    directory.update(mona, { name: "Lisa" });
    outbox.entityRenamed(mona);
    expect(waits()).toBe(true);
    await settled();
    expect(asked.sort()).toEqual([alpha, beta].sort());
    expect(told.renameMember).toHaveBeenCalledWith(workspaceId, mona, "Lisa");
    expect(waits()).toBe(false);
  }));

test("[L7] a sign-out waits for no space that is slow to hear of something else", () =>
  withOutbox(async ({ outbox, spaces, told, settled }) => {
    for (let made = 0; made < maxTellsAtOnce; made += 1) {
      spaces.follow(delivery(workspaceId, ids.mint("spc"), 1, {}));
    }
    const slow = createGate();
    told.setRetention.mockImplementation(async () => {
      slow.reach();
      await slow.opened;
      return ok(null);
    });
    outbox.retentionChanged();
    await slow.reached;
    outbox.signedOut(mona);
    await vi.waitFor(() => expect(told.proveAgain).toHaveBeenCalledTimes(2));
    slow.open();
    await settled();
  }));

test("[L7] ends of credentials are told first where a socket was proven last, hours later too", () =>
  withOutbox(async ({ outbox, spaces, asked, time, settled }) => {
    const others = Array.from({ length: 20 }, () => ids.mint("spc"));
    for (const spaceId of others) spaces.follow(delivery(workspaceId, spaceId, 1, {}));
    const [one = "", other = ""] = [others[3], others[15]];
    for (const spaceId of [one, other, one]) {
      time.now += 61 * 60_000;
      outbox.noteSocket(`id of ${spaceId}`);
    }
    outbox.makerEnded("key_1");
    await settled();
    expect(asked.slice(0, 2)).toEqual([one, other]);
    time.now += 31 * 86_400_000;
    outbox.noteSocket(`id of ${beta}`);
    asked.splice(0);
    outbox.makerEnded("key_2");
    await settled();
    expect(asked[0]).toBe(beta);
    expect(new Set(asked).size).toBe(others.length + 3);
  }));

test("a removal is told to every space, a new secret to every agent, still sealed", () =>
  withOutbox(async ({ outbox, directory, secrets, told, asked, settled }) => {
    directory.remove(mona);
    outbox.entityRemoved(mona, "human");
    secrets.put("KEY", "v1.sealed");
    outbox.secretsChanged();
    await settled();
    expect(told.removeMember).toHaveBeenCalledTimes(2);
    expect(told.setSecrets).toHaveBeenCalledWith(workspaceId, { KEY: "v1.sealed" });
    expect(asked).toContain(robot);
  }));

test("[R5] an agent that the directory has removed is ended, also after a failed try", () =>
  withOutbox(async ({ outbox, directory, told, timers, time, settled, alarm, waits }) => {
    told.remove.mockRejectedValueOnce(new Error("the object was reset"));
    directory.remove(robot);
    outbox.entityRemoved(robot, "agent");
    await settled();
    expect(told.remove.mock.calls).toEqual([[workspaceId]]);
    const none = refuse("not_found", "there is no such agent");
    // It may have been imported to the end between both.
    told.remove.mockResolvedValueOnce(none).mockResolvedValueOnce(none);
    const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warned.mockRestore());
    time.now = timers.dueAt(jobsTimer) ?? 0;
    await alarm();
    expect(told.remove).toHaveBeenCalledTimes(3);
    expect(warned).not.toHaveBeenCalled();
    expect(waits()).toBe(false);
    outbox.entityRemoved(mona, "human");
    await settled();
    expect(told.remove).toHaveBeenCalledTimes(3);
  }));

test("[R5] an agent that was created again under the same id is not ended", () =>
  withOutbox(async ({ outbox, directory, told, settled, waits }) => {
    directory.remove(robot);
    outbox.entityRemoved(robot, "agent");
    directory.create(robot, { type: "agent", name: "Robot", role: "member" });
    await settled();
    expect(told.remove).not.toHaveBeenCalled();
    expect(waits()).toBe(false);
  }));

test("an unreachable space is told later, with the newest name only, and holds up no other", () =>
  withOutbox(async ({ outbox, directory, told, timers, time, settled, alarm, waits }) => {
    told.renameMember.mockRejectedValueOnce(new Error("the object was reset"));
    directory.update(mona, { name: "Lisa" });
    outbox.entityRenamed(mona);
    await settled();
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    const dueAt = timers.dueAt(jobsTimer);
    expect(dueAt).toBeGreaterThan(time.now);
    directory.update(mona, { name: "Elisabeth" });
    await alarm();
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    time.now = dueAt ?? 0;
    await alarm();
    expect(told.renameMember).toHaveBeenCalledTimes(3);
    expect(told.renameMember).toHaveBeenLastCalledWith(workspaceId, mona, "Elisabeth");
    expect(waits()).toBe(false);
  }));

test("[S5] a space that never answers is asked again later and holds up no removal", () =>
  withOutbox(async ({ outbox, directory, told, timers, time, settled }) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    told.renameMember.mockReturnValueOnce(new Promise(() => undefined));
    outbox.entityRenamed(mona);
    await vi.waitFor(() => expect(told.renameMember).toHaveBeenCalledTimes(2));
    directory.remove(mona);
    outbox.entityRemoved(mona, "human");
    await vi.advanceTimersByTimeAsync(tellTimeoutMs);
    await settled();
    expect(told.removeMember).toHaveBeenCalledTimes(2);
    expect(timers.dueAt(jobsTimer)).toBeGreaterThan(time.now);
  }));

test("a retryable refusal is tried again, a terminal one is not", () =>
  withOutbox(async ({ outbox, told, settled, waits }) => {
    told.renameMember
      .mockResolvedValueOnce(refuse("unavailable", "later"))
      .mockResolvedValueOnce(refuse("gone", "over"));
    outbox.entityRenamed(mona);
    await settled();
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    expect(waits()).toBe(true);
  }));

test("a name that changes while it is told is told again", () =>
  withOutbox(async ({ outbox, directory, told, spaces, settled, waits }) => {
    spaces.follow(delivery(workspaceId, beta, 2, {}));
    const telling = Promise.withResolvers<Awaited<ReturnType<SpaceRpc["renameMember"]>>>();
    told.renameMember.mockReturnValueOnce(telling.promise);
    directory.update(mona, { name: "Lisa" });
    outbox.entityRenamed(mona);
    await vi.waitFor(() => expect(told.renameMember).toHaveBeenCalledTimes(1));
    directory.update(mona, { name: "Elisabeth" });
    outbox.entityRenamed(mona);
    telling.resolve(ok(null));
    await settled();
    expect(told.renameMember).toHaveBeenLastCalledWith(workspaceId, mona, "Elisabeth");
    expect(waits()).toBe(false);
  }));

test("a space that still has a removed member or an old name is told again", () =>
  withOutbox(async ({ outbox, told, settled }) => {
    const removed = ids.mint("ent");
    outbox.spaceFollowed(delivery(workspaceId, alpha, 2, { [mona]: "Old name", [removed]: "Ghost" }), []);
    await settled();
    expect(told.renameMember).toHaveBeenCalledWith(workspaceId, mona, "Mona");
    expect(told.removeMember).toHaveBeenCalledWith(expect.objectContaining({ workspaceId }), removed);
  }));
