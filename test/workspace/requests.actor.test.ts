import { expect, test } from "vitest";
import migrations from "../../migrations/workspace/migrations.js";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import {
  maxRequests,
  maxStoredAnswerCharacters,
  requestLeaseMs,
  requestLifetimeMs,
} from "../../src/workspace/bounds.ts";
import { Requests } from "../../src/workspace/requests.ts";
import { withStorage } from "./fixture.ts";

/** The module alone, on real storage, with a clock that the test moves. */
type Act = (requests: Requests, clock: { time: number }, storage: DurableObjectStorage) => void;
const withRequests = (act: Act): Promise<void> =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, migrations);
    const clock = { time: 1_000_000 };
    act(new Requests(db, { now: () => clock.time }), clock, storage);
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

test("[B3] only what is kept counts toward the bound: refusals never use it up", () =>
  withRequests((requests) => {
    for (let count = 0; count <= maxRequests; count += 1) {
      requests.begin({ ...name, key: `refused ${count}` }, "body");
      requests.abandon({ ...name, key: `refused ${count}` });
    }
    expect(requests.begin(name, "body")).toEqual({});
  }));

test("[B3] past maxRequests in a day a request with a key is refused by the bound's name, until the day is over", () =>
  withRequests((requests, clock, storage) => {
    storage.sql.exec(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
       insert into requests (principal, key, body_hash, begun_at) select 'key:1', 'kept ' || i, 'body', ? from n`,
      maxRequests,
      clock.time,
    );
    expect(() => requests.begin(name, "body")).toThrow("maxRequests");
    clock.time += requestLifetimeMs + 1;
    requests.prune();
    expect(requests.begin(name, "body")).toEqual({});
  }));
