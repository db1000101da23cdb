import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate, type Gate } from "../support/gate.ts";
import { apiError, refusal, step, text } from "../support/scripted-model.ts";
import { inboxOf, openHouse, passTime, rowsIn, runsOf, scripted, userTexts } from "./fixture.ts";

afterEach(() => void vi.useRealTimers());

type Deed = "wakes" | "quiet" | "commit" | "fail" | "cancel";
/** A run as its model sees it: what its input showed, and what it is told to do when the test says so. */
type Live = { runId: string; shown: string[]; shownNew: string[]; gate: Gate; fails: boolean };

const maxConcurrentRuns = 2;

const liveOf = (prompt: string): Live => {
  const marked = [...prompt.matchAll(/ {2}\[msg_.*: "(?:@Analyst )?(\d+)" {2}\[(SEEN|NEW)\]/g)];
  return {
    runId: /(run_\w+) \(this run\)/.exec(prompt)?.[1] ?? "",
    shown: marked.map(([, name = ""]) => name),
    shownNew: marked.flatMap(([, name = "", mark]) => (mark === "NEW" ? [name] : [])),
    gate: createGate(),
    fails: false,
  };
};

/** Plays one conversation through the actors, and checks every input that its runs are given. */
const play = async (course: { deed: Deed; which: number }[]): Promise<void> => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxConcurrentRuns, maxWakesPerRoot: 100 };
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", limits });
  const sara = await house.person("Sara");
  const space = await house.space("Alpha", [husam, sara, analyst]);
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  const agent = env.AGENT.getByName(analyst.id);
  // The clock stands: what failed is tried again only when the test lets time pass.
  vi.setSystemTime(Date.now());

  let live: Live[] = [];
  const done = new Set<string>();
  const waiting = new Set<string>();
  const wrong: string[] = [];
  let failed = false;
  scripted(async (options) => {
    const run = liveOf(userTexts(options)[0] ?? "");
    for (const name of run.shown) {
      const wanted = waiting.has(name) || !done.has(name);
      if (run.shownNew.includes(name) !== wanted) wrong.push(`${name} is ${wanted ? "skipped" : "new twice"}`);
    }
    live.push(run);
    await run.gate.opened;
    return run.fails ? refusal(apiError(400)) : step(text("Read."));
  });

  const runOf = async (runId: string) => (await runsOf(house.workspaceId, analyst)).find(({ id }) => id === runId);
  const settled = () =>
    vi.waitFor(
      async () => {
        const events = await inboxOf(house.workspaceId, analyst);
        const runs = (await runsOf(house.workspaceId, analyst)).filter(({ status }) => status === "running");
        expect(runs.map(({ id }) => id).sort()).toEqual(live.map(({ runId }) => runId).sort());
        const ready = events.filter(({ status, lastError }) => status === "pending" && lastError === undefined);
        if (runs.length < maxConcurrentRuns) expect(ready).toEqual([]);
      },
      { timeout: 5000, interval: 5 },
    );
  const end = async (run: Live, how: "commit" | "fail" | "cancel"): Promise<void> => {
    const trigger = (await runOf(run.runId))?.trigger.text?.replace("@Analyst ", "") ?? "";
    live = live.filter((each) => each !== run);
    if (how === "commit") for (const name of run.shown) done.add(name);
    if (how !== "fail") {
      done.add(trigger);
      waiting.delete(trigger);
    }
    run.fails = how === "fail";
    failed ||= run.fails;
    if (how === "cancel") unwrap(await agent.cancelRun(house.workspaceId, run.runId));
    else run.gate.open();
    await vi.waitFor(async () => expect((await runOf(run.runId))?.status).not.toBe("running"), { interval: 5 });
  };

  let posted = 0;
  const post = async (deed: "wakes" | "quiet"): Promise<void> => {
    posted += 1;
    if (deed === "wakes") waiting.add(String(posted));
    const words = deed === "wakes" ? `@Analyst ${posted}` : String(posted);
    const { seq } = await space.post(deed === "wakes" ? husam : sara, words);
    await vi.waitFor(
      async () => {
        const [row] = await rowsIn(analyst, "SELECT cursor FROM spaces");
        expect(Number(row?.cursor)).toBeGreaterThanOrEqual(seq);
      },
      { interval: 5 },
    );
    await settled();
  };
  for (const { deed, which } of course) {
    const run = live[which % Math.max(1, live.length)];
    if (deed === "wakes" || deed === "quiet") await post(deed);
    else if (run) {
      await end(run, deed);
      await settled();
    }
  }
  while (live[0] || failed) {
    while (live[0]) {
      await end(live[0], "commit");
      await settled();
    }
    failed = false;
    await passTime(analyst, 60_000);
    await settled();
    failed = live.length > 0;
  }
  await post("wakes");
  for (const run of live) await end(run, "commit");
  expect(wrong).toEqual([]);
  expect([...done].sort()).toEqual(Array.from({ length: posted }, (_, index) => String(index + 1)).sort());
};

const courses = fc.sample(
  fc.array(
    fc.record({
      deed: fc.constantFrom<Deed>("wakes", "wakes", "quiet", "quiet", "commit", "fail", "cancel"),
      which: fc.nat(1),
    }),
    { minLength: 8, maxLength: 16 },
  ),
  { numRuns: 8, seed: 3 },
);

test.each(courses.map((course) => [course.map(({ deed }) => deed).join(" "), course] as const))(
  "nothing is [NEW] twice after commits or skipped: $0",
  async (_, course) => play(course),
);
