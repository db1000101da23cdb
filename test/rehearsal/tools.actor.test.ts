import { expect, test, vi } from "vitest";
import { asShown } from "../support/as-shown.ts";
import { call, openHouse } from "../support/house.ts";
import { kinds, messagesIn } from "./listed.ts";

const text = { type: "string" };
const deploy = {
  name: "deploy",
  description: "Deploys. Two people approve it first.",
  executionType: "internal",
  inputSchema: { type: "object", properties: { what: text }, required: ["what"] },
  output: { status: "deployed" },
  approval: { quorum: 2 },
};
const choose = { name: "choose", description: "Asks people to choose", executionType: "space" };
const chart = { name: "chart", description: "Shows a chart", executionType: "internal", visible: true };
const report = {
  name: "report",
  description: "Reports later",
  executionType: "internal",
  output: "all well",
  async: true,
};

const open = async (kind: { continuity: string; messaging: string }) => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const steward = await house.agent({ name: "Steward", ...kind, tools: [deploy, choose, chart, report] });
  const { id } = await house.space("Workshop", [husam, sara, steward]);
  const messages = () => messagesIn(id, house.secretKey);
  const shown = (name: string, status: string) =>
    vi.waitFor(
      async () => {
        const found = (await messages()).findLast(({ toolCall }) => toolCall?.name === name)?.toolCall;
        expect(found?.status).toBe(status);
        if (!found) throw new Error("it does not show");
        return found;
      },
      { timeout: 10_000 },
    );
  return {
    ask: (words: string) => house.say(id, husam, words),
    shown,
    said: (words: string) =>
      vi.waitFor(
        async () => {
          const agents = (await messages()).filter(({ sender }) => sender.type === "agent");
          expect(agents.map((message) => message.text)).toContain(words);
        },
        { timeout: 10_000 },
      ),
    answer: async (who: { token: string }, name: string, result: Record<string, string | boolean>) => {
      const asked = await shown(name, "requires_action");
      const { id: callId } = asked;
      const response = await call(`/v1/spaces/${id}/tool-calls/${callId}/result`, {
        bearer: who.token,
        body: asShown(asked, { result }),
      });
      expect(response.status).toBe(200);
    },
    husam,
    sara,
  };
};

test.each(kinds)(
  "$continuity, $messaging: two people approve what it was told to deploy, and it says so",
  async (kind) => {
    const { ask, said, shown, answer, husam, sara } = await open(kind);
    await ask("@Steward deploy the shop");
    await answer(husam, "deploy", { approved: true });
    await answer(sara, "deploy", { approved: true, note: "go on" });
    await said('Done: deploy (shop): status: deployed (approved by Husam, Sara: "go on")');
    expect((await shown("deploy", "complete")).input).toEqual({ what: "shop" });
  },
);

test.each(kinds)("$continuity, $messaging: it says who rejected, what was chosen, and draws", async (kind) => {
  const { ask, said, shown, answer, husam, sara } = await open(kind);
  await ask("@Steward deploy the shop");
  await answer(sara, "deploy", { approved: false, note: "freeze" });
  await said('It was not approved, so I did not deploy (shop): "Sara" rejected it: "freeze"');
  await ask("@Steward ask us to choose tea or coffee");
  await answer(husam, "choose", { choice: "tea" });
  await said("The choice is: tea");
  await ask("@Steward chart a: 1, b: 2");
  await said("Here is the chart.");
  expect((await shown("chart", "complete")).input).toMatchObject({ type: "bar" });
});

test.each(kinds)("$continuity, $messaging: it tells a late result when it comes", async (kind) => {
  const { ask, said } = await open(kind);
  await ask("@Steward use report");
  await said("It is under way: report. I will say here what comes of it.");
  await said("Done: report: all well");
});
