import { expect, test } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import {
  maxAnswerDatabaseBytes,
  maxRequests,
  maxStoredAnswerCharacters,
  requestLeaseMs,
  requestLifetimeMs,
} from "../../src/workspace/bounds.ts";
import { createRequests } from "../../src/workspace/requests.ts";
import { withStorage } from "./fixture.ts";

/** The module alone, on real storage, with a clock that the test moves. */
type Act = (
  requests: ReturnType<typeof createRequests>,
  clock: { time: number },
  storage: DurableObjectStorage,
  full: { bytes: number },
) => void;
const withRequests = (act: Act): Promise<void> =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, histories.workspace);
    const clock = { time: 1_000_000 };
    const full = { bytes: 0 };
    act(
      createRequests(db, { now: () => clock.time }, () => full.bytes),
      clock,
      storage,
      full,
    );
  });

const name = { principal: "key:1", key: "POST /v1/entities abc" };

test("[D1] a request is done once: under way it is refused, done it is answered again", () =>
  withRequests((requests) => {
    expect(requests.begin(name, "body")).toEqual({});
    expect(() => requests.begin(name, "body")).toThrow(expect.objectContaining({ code: "idempotency_in_progress" }));
    requests.end(name, 201, "answer");
    expect(requests.begin(name, "body")).toEqual({ replay: { status: 201, body: "answer" } });
    expect(() => requests.begin(name, "another")).toThrow(expect.objectContaining({ code: "idempotency_mismatch" }));
    expect(requests.begin({ ...name, principal: "key:2" }, "another")).toEqual({});
  }));

test("[D1] what never ended may be tried again after a minute, with the same body only", () =>
  withRequests((requests, clock) => {
    requests.begin(name, "body");
    clock.time += requestLeaseMs;
    expect(() => requests.begin(name, "another")).toThrow(expect.objectContaining({ code: "idempotency_mismatch" }));
    expect(requests.begin(name, "body")).toEqual({});
    expect(() => requests.begin(name, "body")).toThrow(expect.objectContaining({ code: "idempotency_in_progress" }));
  }));

test("what was refused is forgotten at once, what was answered after a day", () =>
  withRequests((requests, clock) => {
    requests.begin(name, "body");
    requests.abandon(name);
    expect(requests.begin(name, "another")).toEqual({});
    requests.end(name, 201, "answer");
    requests.abandon(name);
    expect(requests.prune()).toBe(clock.time + requestLifetimeMs);
    clock.time += requestLifetimeMs + 1;
    expect(requests.prune()).toBeUndefined();
    expect(requests.begin(name, "body")).toEqual({});
  }));

test("[B3] an answer that is too long is not kept", () =>
  withRequests((requests, clock) => {
    requests.begin(name, "body");
    requests.end(name, 201, "x".repeat(maxStoredAnswerCharacters + 1));
    clock.time += requestLeaseMs;
    expect(requests.begin(name, "body")).toEqual({});
  }));

const fill = (storage: DurableObjectStorage, principal: string, count: number, at: number): void => {
  storage.sql.exec(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
     insert into requests (principal, key, body_hash, begun_at) select ?, 'kept ' || i, 'body', ? from n`,
    count,
    principal,
    at,
  );
};

test("[B3] answers are not kept once the database is full, and nobody is refused for that", () =>
  withRequests((requests, clock, _, full) => {
    full.bytes = maxAnswerDatabaseBytes;
    expect(requests.begin(name, "body")).toEqual({});
    requests.end(name, 201, "answer");
    clock.time += requestLeaseMs;
    expect(requests.begin(name, "body")).toEqual({});
    full.bytes -= 1;
    requests.end(name, 201, "answer");
    expect(requests.begin(name, "body")).toEqual({ replay: { status: 201, body: "answer" } });
  }));

test.each(["entity:1", "key:1:"])(
  "[B3] only what is kept counts toward the bound of %s: refusals never use it up",
  (principal) =>
    withRequests((requests, clock, storage) => {
      fill(storage, principal, maxRequests - 1, clock.time);
      for (let count = 0; count < 5; count += 1) {
        requests.begin({ principal, key: `refused ${count}` }, "body");
        requests.abandon({ principal, key: `refused ${count}` });
      }
      expect(requests.begin({ principal, key: "new" }, "body")).toEqual({});
      expect(() => requests.begin({ principal, key: "newer" }, "body")).toThrow("maxRequests");
    }),
);

test("[B3] a caller past maxRequests is refused by name until the day is over, nobody else is", () =>
  withRequests((requests, clock, storage) => {
    fill(storage, "entity:1", maxRequests, clock.time);
    fill(storage, "key:1:", maxRequests - 1, clock.time);
    fill(storage, "key:1:ent_1", 1, clock.time);
    const asks = (principal: string) => () => requests.begin({ principal, key: "new" }, "body");
    expect(asks("entity:1")).toThrow(expect.objectContaining({ code: "limit_reached" }));
    expect(asks("entity:1")).toThrow("maxRequests");
    for (const same of ["key:1:", "key:1:ent_1", "key:1:ent_2"]) expect(asks(same)).toThrow("maxRequests");
    for (const other of ["entity:2", "entity:10", "key:2:", "key:10:", "key:2:ent_1", "operator"]) {
      expect(asks(other)()).toEqual({});
    }
    clock.time += requestLifetimeMs + 1;
    requests.prune();
    for (const each of ["entity:1", "key:1:", "key:1:ent_2"]) expect(asks(each)()).toEqual({});
  }));
