import {
  type Actor,
  both,
  calls,
  held,
  living,
  type Play,
  type Scene,
  say,
  sectionOf,
  timeline,
  until,
  use,
} from "./scene.ts";

/** Lines 1 to 7, and beyond: what an agent knows of what it did, was told and took over. */
const inputSchema = { type: "object" };
const refund = { name: "refund", description: "Pays back", inputSchema, executionType: "internal", output: "paid" };
const job = { name: "job", description: "Works long", inputSchema, executionType: "external", async: true };
const paying = use("refund", { order: "A1" });
const posts = (spaceId: string, text: string) =>
  [calls(use("enter_space", { spaceId }), use("send_message", { text })), say("Sent.")] as const;
const notify = ({ api }: Scene, { at }: Actor, payload: unknown) =>
  api.post(`${at}/trigger`, { serviceName: "jira", payload });
const plan = ({ api }: Scene, { at }: Actor, instruction: string): Promise<void> => {
  const scheduledAt = new Date(Date.now() + 1500).toISOString();
  return api.put(`${at}/plans/daily`, { name: "Daily Report", instruction, scheduledAt });
};
const long = " and so on".repeat(150);
const small = { maxTokens: 5000, reservedResponseTokens: 500, minRecentCycles: 1 };

const elsewhere = async (scene: Scene): Promise<void> => {
  const { check, reads, person, space, messages, room } = scene;
  const { husam, analyst, alpha } = await room({ tools: [refund] });
  const dev = await space("Dev", [await person("Sara"), analyst], "addressed");
  analyst.play(...posts(dev, "The report is out"));
  await analyst.after(() => husam.post(alpha, "Send the report to Dev"));
  await analyst.after(() => husam.post(alpha, "Did you send it?"));
  const history = sectionOf(analyst.opening(), 'SPACE HISTORY ("Alpha")');
  const sent = `You: sent "The report is out" to "Dev" (${(await messages(dev)).at(-1)?.id})`;
  reads("the history says what it sent elsewhere", history, '"Send the report to Dev"', sent, '"Did you send it?"');
  analyst.play(calls(paying), say("Paid."));
  const served = await analyst.after(() => notify(scene, analyst, { issue: "PROJ-1" }));
  analyst.play(...posts(dev, "Revenue $2.1M"));
  const planned = await analyst.after(() => plan(scene, analyst, "Post the metrics"));
  const { outputs } = await analyst.does(husam, alpha, "What else?", use("get_my_runs", { runId: served.id }));
  const recent = sectionOf(analyst.given(), "RECENT RUNS");
  const paid = 'You: called refund({"order":"A1"}) → "paid"';
  reads(
    "RECENT RUNS has a service's run",
    recent,
    `${served.id} (completed) — service "jira": {"issue":"PROJ-1"}`,
    paid,
  );
  const cause = `${planned.id} (completed) — plan "Daily Report": "Post the metrics"`;
  reads("and a plan's", recent, cause, 'You: sent "Revenue $2.1M" to "Dev"');
  check("and nothing that the history shows", !recent.includes("The report is out"), recent);
  const full = ['"payload":{"issue":"PROJ-1"}', '"toolName":"refund","input":{"order":"A1"},"output":"paid"'];
  reads("get_my_runs gives trigger and actions in full", outputs[0], ...full);
};

const wordless = async ({ check, reads, shown, person, space, agent }: Scene): Promise<void> => {
  const husam = await person("Husam");
  const endings = {
    exit_loop: { last: use("send_message", { text: "Fine" }), fact: 'sent "Fine" to "exit_loop" (msg_' },
    wait: { last: use("send_message", { text: "Fine?", wait: true }), fact: 'sent "Fine?" to "wait" (msg_' },
    skip: { last: use("skip", { reason: "late" }), fact: 'called skip({"reason":"late"})' },
  };
  for (const [ending, { last, fact }] of Object.entries(endings)) {
    const toolRules = ending === "exit_loop" ? [{ tool: "send_message", rule: ending }] : [];
    const analyst = await agent({ name: `A-${ending}`, context: small, toolRules });
    const spaceId = await space(ending, [husam, analyst]);
    for (let round = 1; round <= 12; round += 1) {
      const memories = [{ key: "round", value: String(round) }];
      analyst.play(calls(use("enter_space", { spaceId }), use("set_memories", { memories }), last));
      if (ending === "skip") analyst.play(say(""));
      await analyst.after(() => husam.post(spaceId, `${round === 1 ? "Where is the zeppelin?" : "And now?"}${long}`));
    }
    const told = sectionOf(analyst.given(), "EARLIER CYCLES").split("\n").slice(1);
    const facts = ["called set_memories(", fact];
    const isTold = (line: string) =>
      /"Husam" (asked|answered) "/.test(line) && facts.every((each) => line.includes(each));
    check(`a cycle that ended with ${ending} is told by its journal`, told.length > 3 && told.every(isTold), told);
    const found = await shown(`${analyst.at}/search?q=zeppelin&types=consciousness`);
    reads("line 3: after the compaction search finds what only its message held", found, "Where is the zeppelin?");
  }
};

const left = async ({ check, reads, api, shown, room }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  await analyst.after(() => husam.post(alpha, "The quinces are ripe"));
  const search = (types: string) => shown(`${analyst.at}/search?q=quinces${types}`);
  reads("what it was told is found as its life", await search("&types=consciousness"), "The quinces are ripe");
  await api.delete(`/v1/spaces/${alpha}/members/${analyst.id}`);
  const none = await until("it has left", async () => {
    const found = await search("&types=message");
    return !found.includes("quinces") && found;
  });
  check("after it left it is found as no message", none.includes('"items":[]'), none);
  reads("but as its life, with the space's name", await search(""), "The quinces are ripe", '"spaceName":"Alpha"');
};

const takenOver = async (scene: Scene): Promise<void> => {
  const { url, check, reads, shown, model, room } = scene;
  const { husam, analyst, alpha } = await room({ tools: [refund] });
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/spaces/${alpha}/stream?token=${husam.token}`);
  const frames: string[] = [];
  socket.addEventListener("message", ({ data }) => frames.push(String(data)));
  const why = `${"because of this ".repeat(200)}THE END`;
  const causes = {
    service: { begin: () => notify(scene, analyst, { why }), shows: `"payload":{"why":"${why}"}` },
    plan: { begin: () => plan(scene, analyst, why), shows: `"instruction":"${why}"` },
    message: { begin: () => husam.post(alpha, why), shows: `"text":"${why}"` },
  };
  let runId = "";
  for (const [cause, { begin, shows }] of Object.entries(causes)) {
    const before = analyst.requests().length;
    analyst.play(calls(paying), held);
    await begin();
    await analyst.asked(before + 2);
    runId = (await analyst.runs()).at(-1)?.id ?? "";
    const { run, outputs } = await analyst.does(husam, alpha, "Take it over", use("absorb_run", { runId }));
    model.release();
    reads(`${cause}: the whole trigger is given, and all that was done`, outputs[0], shows, '"toolName":"refund"');
    reads(
      `${cause}: the record names who absorbed it`,
      await shown(`${analyst.at}/runs/${runId}`),
      `"endedBy":"${run.id}"`,
    );
    reads(
      `${cause}: and the other what it absorbed`,
      await shown(`${analyst.at}/runs/${run.id}`),
      `"absorbed":["${runId}"]`,
    );
  }
  const end = await until("the stream's end", async () =>
    frames.find((each) => each.includes(runId) && /"run\.[ac]/.test(each)),
  );
  reads("the stream says run.absorbed", end, '"run.absorbed"');
  socket.close();
  const { outputs, run } = await analyst.does(husam, alpha, "Once more", use("absorb_run", { runId }));
  reads(
    "a finished run is not absorbed: how it ended, what reads it",
    outputs[0],
    "conflict",
    "absorbed",
    "get_my_runs",
  );
  check("and the run goes on", run.status === "completed", run);
};

const activeRuns = async (scene: Scene): Promise<void> => {
  const { reads, api, room } = scene;
  const { husam, analyst, alpha } = await room({ tools: [job] });
  await analyst.does(husam, alpha, "Begin", use("job", { night: 1 }));
  analyst.play(held, held, held);
  for (const [index, issue] of ["PROJ-1", "PROJ-2"].entries()) {
    await notify(scene, analyst, { issue });
    await analyst.asked(3 + index);
  }
  const { items } = await api.get<{ items: { toolCallId: string }[] }>("/v1/tool-calls");
  await api.post(`/v1/tool-calls/${items[0]?.toolCallId}/result`, { result: { rows: 42 } });
  await analyst.asked(5);
  await analyst.after(() => husam.post(alpha, "Hello"));
  const active = sectionOf(analyst.opening(), "ACTIVE RUNS");
  const jira = [1, 2].map((issue) => `service "jira": {"issue":"PROJ-${issue}"}`);
  reads("two runs of one service differ by what came", active, ...jira);
  reads("a late result is quoted", active, 'tool_result "job": {"rows":42}');
};

const origins = async (scene: Scene): Promise<void> => {
  const { check, reads, person, space, agent, messages, continuity } = scene;
  const [sara, analyst] = [await person("Sara"), await agent()];
  const reader = await agent({ name: "Reader", continuity: "timeline" });
  const dev = await space("Dev", [sara, analyst, reader], "addressed");
  analyst.play(...posts(dev, "PROJ-1 is done"));
  const served = await analyst.after(() => notify(scene, analyst, { secret: "s3cret" }));
  analyst.play(...posts(dev, "Revenue $2.1M"));
  const planned = await analyst.after(() => plan(scene, analyst, "Post the metrics"));
  const told = (await messages(dev)).map(({ origin }) => JSON.stringify(origin));
  reads("a service's event is the origin", told[0], `{"sourceType":"service","sourceRunId":"${served.id}"}`);
  reads("a plan is", told[1], `{"sourceType":"plan","sourceRunId":"${planned.id}"}`);
  await Promise.all([
    reader.ended(1),
    analyst.does(sara, dev, "@Analyst @Reader why?", use("read_messages", { spaceId: dev })),
  ]);
  const whys = {
    consciousness: ['"sourceName":"jira","sourceEvent":"{', "s3cret", '"Daily Report","sourceEvent":"Post the'],
    timeline: ['[sent because the service "jira" sent {"secret":"s3cret"}]', 'plan "Daily Report" was due: "Post the'],
  };
  reads("its name and words are for the agent itself", analyst.given(), ...whys[continuity]);
  const others = reader.opening();
  reads("a reference is for others", others, "[sent because a service sent an event]", "[sent because a plan was due]");
  check("and no word of it", !/s3cret|Post the metrics|Daily Report/.test(others), others);
};

const summarised = async ({ check, room, scripted }: Scene): Promise<void> => {
  const compaction = { strategy: "recursive_summarization", chunkSize: 4, model: scripted("summariser") };
  const { husam, analyst, alpha } = await room({ context: { historyMessages: 3, compaction } });
  let most = 0;
  for (let count = 1; count <= 16; count += 1) {
    await analyst.after(() => husam.post(alpha, `Word ${count}.`));
    const history = sectionOf(analyst.opening(), "SPACE HISTORY");
    const shown = [...history.matchAll(/"Word (\d+)\."/g)].map(([, word]) => Number(word));
    const summary = Number(/SUMMARY of (\d+) earlier messages/.exec(history)?.[1] ?? 0);
    const hidden = Number(/\((\d+) earlier messages are not shown: summarized below;/.exec(history)?.[1] ?? 0);
    const isWhole = shown[0] === summary + 1 && hidden === summary && shown.length === count - summary;
    if (!isWhole) check(`of ${count} messages each is in the summary or in the window`, false, history);
    most = Math.max(most, summary);
  }
  check("of up to 16 messages each was in the summary, or in the window that begins where it ends", most >= 8, most);
};

type Knowledge = { known: boolean; places: { how: string; tool?: string; input?: { query?: string } }[] };

const asks = async ({ check, reads, api, shown, person, space, room, continuity }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room({ tools: [refund], context: { ...small, historyMessages: 4 } });
  let messageId = "";
  await analyst.after(async () => (messageId = await husam.post(alpha, "Is the walrus fed?")));
  const { run } = await analyst.does(husam, alpha, "Pay it back", paying);
  const call = run.steps.flatMap(({ toolCalls }) => toolCalls).find(({ name }) => name === "refund");
  const things = [
    { id: `messageId=${messageId}`, words: "walrus" },
    { id: `callId=${call?.id}`, words: "refund" },
    { id: `eventId=${run.trigger.eventId}`, words: "Pay it back" },
  ];
  const knows = (id: string) => api.get<Knowledge>(`${analyst.at}/knows?${id}`);
  for (const { id } of things) {
    const { places } = await knows(id);
    // A timeline's next run, while nothing waits, is of no space, and shows no history.
    const how = continuity === "timeline" && !id.startsWith("callId") ? "tool" : "verbatim";
    check(
      `${id.replace(/=.*/, "")} is known: ${how}`,
      places.some((place) => place.how === how),
      places,
    );
  }
  for (let round = 1; round <= 10; round += 1) await analyst.after(() => husam.post(alpha, `And now?${long}`));
  for (const { id, words } of things) {
    const { places } = await knows(id);
    const query = places.find(({ tool }) => tool === "search")?.input?.query ?? "";
    check(`${id.replace(/=.*/, "")} is known later, by search`, query !== "", places);
    reads(
      "and the search that it names finds it",
      await shown(`${analyst.at}/search?q=${encodeURIComponent(query)}`),
      words,
    );
  }
  const sara = await person("Sara");
  const unheard = await sara.post(await space("Beta", [sara]), "Not for it");
  check("what it never heard is not known", !(await knows(`messageId=${unheard}`)).known);
};

export const knows: Play[] = [
  { line: "1", says: "a timeline knows what it did elsewhere", as: timeline, go: elsewhere },
  { line: "2", says: "a cycle without last words is told by its journal", as: living, go: wordless },
  { line: "3", says: "what it was told is found", as: both, go: left },
  { line: "4", says: "a run that absorbs another takes over all of it", as: timeline, go: takenOver },
  { line: "5", says: "ACTIVE RUNS says why each runs", as: timeline, go: activeRuns },
  { line: "6", says: "messages of plans and services have an origin", as: both, go: origins },
  { line: "7", says: "no message lies between summary and window", as: timeline, go: summarised },
  { line: "beyond", says: "does it know?", as: both, go: asks },
];
