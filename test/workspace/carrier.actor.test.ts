import { expect, onTestFinished, test, vi } from "vitest";
import migrations from "../../migrations/workspace/migrations.js";
import type { AgentRpc, SpaceRpc } from "../../src/protocol/rpc.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import type { ActorNamespace } from "../../src/shared/env.ts";
import { ok, refuse } from "../../src/shared/errors.ts";
import { Timers } from "../../src/timers/timers.ts";
import { carryTimeoutMs } from "../../src/workspace/bounds.ts";
import { Carrier, outboxTimer } from "../../src/workspace/carrier.ts";
import { Directory } from "../../src/workspace/directory.ts";
import { Outbox } from "../../src/workspace/outbox.ts";
import { Secrets } from "../../src/workspace/secrets.ts";
import { SpaceIndex } from "../../src/workspace/space-index.ts";
import { delivery, ids, withStorage } from "./fixture.ts";

const workspaceId = ids.mint("wsp");
const [mona, robot, alpha, beta] = [ids.mint("ent"), ids.mint("ent"), ids.mint("spc"), ids.mint("spc")];

/** The carrier alone, on real storage, telling spaces and agents that the test stands in for. */
const withCarrier = (act: (staged: Awaited<ReturnType<typeof stage>>) => Promise<void>): Promise<void> =>
  withStorage(async (storage) => act(await stage(storage)));

const stage = async (storage: DurableObjectStorage) => {
  const db = openDatabase(storage);
  await createSchema(db, migrations);
  const time = { now: Date.now() };
  const clock = { now: () => time.now };
  const told = {
    renameMember: vi.fn<SpaceRpc["renameMember"]>().mockResolvedValue(ok(null)),
    removeMember: vi.fn<SpaceRpc["removeMember"]>().mockResolvedValue(ok(null)),
    remove: vi.fn<AgentRpc["remove"]>().mockResolvedValue(ok(null)),
    setSecrets: vi.fn<AgentRpc["setSecrets"]>().mockResolvedValue(ok(null)),
  };
  const asked: string[] = [];
  const named = <Rpc>(methods: object): ActorNamespace<Rpc> => ({
    getByName: (name) => {
      asked.push(name);
      return methods as Rpc & { fetch(request: Request): Promise<Response> };
    },
  });
  const directory = new Directory(db, clock);
  const spaces = new SpaceIndex(db);
  const timers = new Timers(db, storage, clock);
  const secrets = new Secrets(db, clock);
  const background: Promise<void>[] = [];
  const uncrashed = { abort: () => undefined, storage: { sync: () => Promise.resolve() } };
  const carrier = new Carrier({
    env: { SPACE: named<SpaceRpc>(told), AGENT: named<AgentRpc>(told) },
    directory,
    secrets,
    spaces,
    outbox: new Outbox(db, clock),
    timers,
    clock,
    object: { ...uncrashed, waitUntil: (work: Promise<void>) => void background.push(work) },
  });
  directory.create(mona, { type: "human", name: "Mona", role: "member" });
  directory.createAgent(robot, "Robot");
  for (const spaceId of [alpha, beta]) spaces.follow(delivery(workspaceId, spaceId, 1, { [mona]: "Mona" }));
  const settled = async (): Promise<void> => void (await Promise.all(background.splice(0)));
  return { carrier, directory, secrets, spaces, timers, told, asked, time, settled };
};

test("a new name is carried to every space of the entity, at once", () =>
  withCarrier(async ({ carrier, directory, told, asked, timers, settled }) => {
    directory.update(mona, { name: "Lisa" });
    carrier.entityRenamed(workspaceId, mona);
    expect(timers.dueAt(outboxTimer)).toBeDefined();
    await settled();
    expect(asked.sort()).toEqual([alpha, beta].sort());
    expect(told.renameMember).toHaveBeenCalledWith(workspaceId, mona, "Lisa");
    expect(timers.dueAt(outboxTimer)).toBeUndefined();
  }));

test("a removal is carried to every space, and a new secret to every agent, still sealed", () =>
  withCarrier(async ({ carrier, directory, secrets, told, asked, settled }) => {
    directory.remove(mona);
    carrier.entityRemoved(workspaceId, mona, "human");
    secrets.put("KEY", "v1.sealed");
    carrier.secretsChanged(workspaceId);
    await settled();
    expect(told.removeMember).toHaveBeenCalledTimes(2);
    expect(told.setSecrets).toHaveBeenCalledWith(workspaceId, { KEY: "v1.sealed" });
    expect(asked).toContain(robot);
  }));

test("[R5] an agent that the directory has removed is ended, whatever became of who removed it; one that is gone is", () =>
  withCarrier(async ({ carrier, directory, told, timers, time, settled }) => {
    told.remove.mockRejectedValueOnce(new Error("the object was reset"));
    directory.remove(robot);
    carrier.entityRemoved(workspaceId, robot, "agent");
    await settled();
    expect(told.remove.mock.calls).toEqual([[workspaceId]]);
    told.remove.mockResolvedValueOnce(refuse("not_found", "there is no such agent"));
    const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warned.mockRestore());
    time.now = timers.dueAt(outboxTimer) ?? 0;
    await carrier.carry(workspaceId);
    expect(told.remove).toHaveBeenCalledTimes(2);
    expect(warned).not.toHaveBeenCalled();
    expect(timers.dueAt(outboxTimer)).toBeUndefined();
    carrier.entityRemoved(workspaceId, mona, "human");
    await settled();
    expect(told.remove).toHaveBeenCalledTimes(2);
  }));

test("[R5] an agent that was made anew since it was removed, under the same id, is not ended", () =>
  withCarrier(async ({ carrier, directory, told, timers, settled }) => {
    directory.remove(robot);
    carrier.entityRemoved(workspaceId, robot, "agent");
    directory.createAgent(robot, "Robot");
    await settled();
    expect(told.remove).not.toHaveBeenCalled();
    expect(timers.dueAt(outboxTimer)).toBeUndefined();
  }));

test("who cannot be reached is told later, with the last name only, and nobody else waits for it", () =>
  withCarrier(async ({ carrier, directory, told, timers, time, settled }) => {
    told.renameMember.mockRejectedValueOnce(new Error("the object was reset"));
    directory.update(mona, { name: "Lisa" });
    carrier.entityRenamed(workspaceId, mona);
    await settled();
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    const dueAt = timers.dueAt(outboxTimer);
    expect(dueAt).toBeGreaterThan(time.now);
    directory.update(mona, { name: "Elisabeth" });
    await carrier.carry(workspaceId);
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    time.now = dueAt ?? 0;
    await carrier.carry(workspaceId);
    expect(told.renameMember).toHaveBeenCalledTimes(3);
    expect(told.renameMember).toHaveBeenLastCalledWith(workspaceId, mona, "Elisabeth");
    expect(timers.dueAt(outboxTimer)).toBeUndefined();
  }));

test("[S5] a space that never answers is asked again later, and holds up no removal", () =>
  withCarrier(async ({ carrier, directory, told, timers, time, settled }) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    told.renameMember.mockReturnValueOnce(new Promise(() => undefined));
    carrier.entityRenamed(workspaceId, mona);
    await vi.waitFor(() => expect(told.renameMember).toHaveBeenCalledTimes(2));
    directory.remove(mona);
    carrier.entityRemoved(workspaceId, mona, "human");
    await vi.advanceTimersByTimeAsync(carryTimeoutMs);
    await settled();
    expect(told.removeMember).toHaveBeenCalledTimes(2);
    expect(timers.dueAt(outboxTimer)).toBeGreaterThan(time.now);
  }));

test("a passing refusal is tried again, one that is for good is not", () =>
  withCarrier(async ({ carrier, told, timers, settled }) => {
    told.renameMember
      .mockResolvedValueOnce(refuse("unavailable", "later"))
      .mockResolvedValueOnce(refuse("gone", "over"));
    carrier.entityRenamed(workspaceId, mona);
    await settled();
    expect(told.renameMember).toHaveBeenCalledTimes(2);
    expect(timers.dueAt(outboxTimer)).toBeDefined();
  }));

test("a name that changes while it is carried is carried again", () =>
  withCarrier(async ({ carrier, directory, told, spaces, timers, settled }) => {
    spaces.follow(delivery(workspaceId, beta, 2, {}));
    const telling = Promise.withResolvers<Awaited<ReturnType<SpaceRpc["renameMember"]>>>();
    told.renameMember.mockReturnValueOnce(telling.promise);
    directory.update(mona, { name: "Lisa" });
    carrier.entityRenamed(workspaceId, mona);
    await vi.waitFor(() => expect(told.renameMember).toHaveBeenCalledTimes(1));
    directory.update(mona, { name: "Elisabeth" });
    carrier.entityRenamed(workspaceId, mona);
    telling.resolve(ok(null));
    await settled();
    expect(told.renameMember).toHaveBeenLastCalledWith(workspaceId, mona, "Elisabeth");
    expect(timers.dueAt(outboxTimer)).toBeUndefined();
  }));

test("a space that still has a removed member or an old name is set right", () =>
  withCarrier(async ({ carrier, told, settled }) => {
    const removed = ids.mint("ent");
    carrier.spaceFollowed(delivery(workspaceId, alpha, 2, { [mona]: "Old name", [removed]: "Ghost" }));
    await settled();
    expect(told.renameMember).toHaveBeenCalledWith(workspaceId, mona, "Mona");
    expect(told.removeMember).toHaveBeenCalledWith(expect.objectContaining({ workspaceId }), removed);
  }));
