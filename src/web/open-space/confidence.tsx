import { use, useState } from "react";
import type { SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { Dialog } from "../look/dialog.tsx";
import { Icon } from "../look/icon.tsx";
import { ConfidentialSpacesContext } from "../session/own-spaces.ts";
import { useSignedIn } from "../session/session.ts";
import { keptWords, RetentionDialog } from "../settings/retention.tsx";
import { confidentialWords } from "../spaces/space-items.ts";

type Release = NonNullable<NonNullable<SpaceState["space"]>["release"]>;

/** How long messages stay, whether the space is confidential, and, for who runs the space, how both change. */
export const Confidence = ({ state, isAdmin }: { state: SpaceState; isAdmin: boolean }) => {
  const { client, entityId } = useSignedIn();
  const confidential = use(ConfidentialSpacesContext);
  const [asked, setAsked] = useState<"confidential" | "release" | "retention" | null>(null);
  const { space, spaceId, members } = state;
  if (!space) return null;
  const { retentionDays, workspaceRetentionDays } = space;
  const keptDays = retentionDays ?? workspaceRetentionDays;
  const isRunner = space.createdBy === entityId || isAdmin;
  const close = (): void => setAsked(null);
  const labels = { title: `Make ${space.name} confidential?`, cancelLabel: "Leave it open", submitLabel: "Make it so" };
  const seal = async (): Promise<void> => {
    await client.updateSpace(spaceId, { confidential: true });
    close();
  };
  const openButton = (which: NonNullable<typeof asked>, words: string) => (
    <button type="button" className="button button-plain" onClick={() => setAsked(which)}>
      <Icon name={which === "retention" ? "clock" : "lock"} size={18} /> {words}
    </button>
  );
  return (
    <>
      {keptDays !== undefined && <p className="small soft">{keptWords(keptDays)}</p>}
      {space.confidential && (
        <p className="small soft">
          {confidentialWords} {releaseWords(space.release, members)} {space.router && routerWords(space.router)}
        </p>
      )}
      {!space.confidential && confidential !== "" && (
        <p className="small soft">What is said in {confidential} stays there: agents know nothing of it here.</p>
      )}
      {isRunner && openButton("retention", "How long messages stay")}
      {isRunner && !space.confidential && openButton("confidential", "Make it confidential")}
      {isRunner && space.confidential && openButton("release", "Who may release words")}
      {asked === "retention" && (
        <RetentionDialog
          title={`How long do messages of ${space.name} stay?`}
          days={retentionDays}
          otherwise={`as the workspace says. ${keptWords(workspaceRetentionDays)}`}
          save={(days) => client.updateSpace(spaceId, { retentionDays: days })}
          onClose={close}
        />
      )}
      {asked === "confidential" && (
        <Dialog {...labels} isDangerous onClose={close} onSubmit={seal}>
          <p>What is said from now on stays here: the agents of this space will know nothing of it elsewhere.</p>
          <p>Open questions and approvals here are withdrawn: let the agents ask again.</p>
          <p>What was said before, they know already. This cannot be undone.</p>
        </Dialog>
      )}
      {asked === "release" && <ReleaseDialog state={state} release={space.release} onClose={close} />}
    </>
  );
};

const releaseWords = ({ quorum, approvers }: Partial<Release> = {}, members: SpaceState["members"]): string => {
  if (quorum === undefined) return "Nobody can let an agent say it elsewhere.";
  const agree = quorum === 1 ? "one person agrees" : `${quorum} people agree`;
  const names = approvers?.map((id) => members.find((member) => member.id === id)?.name ?? "somebody who left");
  const who = names ? `: ${names.join(", ")}` : "";
  return `An agent may say some of it elsewhere once ${agree} to the exact words${who}.`;
};

const routerWords = ({ model }: NonNullable<NonNullable<SpaceState["space"]>["router"]>): string => {
  const named = "alias" in model ? model.alias : model.provider;
  const where = "baseUrl" in model ? new URL(model.baseUrl).host : named;
  return `A router's model (${where}) may read it too.`;
};

type ReleaseDialogProps = { state: SpaceState; release: Release | undefined; onClose: () => void };

/** Asks which people may let an agent say elsewhere what it was told here. */
const ReleaseDialog = ({ state, release, onClose }: ReleaseDialogProps) => {
  const { client } = useSignedIn();
  const people = state.members.filter(({ type }) => type === "human");
  const [who, setWho] = useState(release ? (release.approvers ? "some" : "all") : "nobody");
  const [quorum, setQuorum] = useState(release?.quorum ?? 1);
  const present = new Set(people.map(({ id }) => id));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set(release?.approvers?.filter((id) => present.has(id))),
  );
  const save = async (): Promise<void> => {
    const approvers = who === "some" ? { approvers: [...chosen] } : {};
    await client.updateSpace(state.spaceId, { release: who === "nobody" ? null : { ...approvers, quorum } });
    onClose();
  };
  const labels = { title: "Who may release words?", cancelLabel: "Cancel", submitLabel: "Save" };
  const choice = (value: string, words: string) => (
    <label className="option hoverable">
      <input type="radio" name="release" checked={who === value} onChange={() => setWho(value)} />
      <span>{words}</span>
    </label>
  );
  return (
    <Dialog {...labels} isReady={who !== "some" || chosen.size > 0} onClose={onClose} onSubmit={save}>
      <p className="small soft">They see the exact words and where they would go, before an agent says them there.</p>
      <fieldset>
        {choice("nobody", "Nobody")}
        {choice("all", "Every person here")}
        {choice("some", "Only these")}
      </fieldset>
      {who === "some" && (
        <fieldset className="new-space-people">
          <legend className="field-label">Who may agree</legend>
          {people.map((person) => (
            <label key={person.id} className="option hoverable">
              <input
                type="checkbox"
                checked={chosen.has(person.id)}
                onChange={() => setChosen(chosen.symmetricDifference(new Set([person.id])))}
              />
              <Avatar {...person} size={28} />
              <span>{person.name}</span>
            </label>
          ))}
        </fieldset>
      )}
      {who !== "nobody" && (
        <label className="field">
          <span className="field-label">How many must agree</span>
          <input
            className="input"
            type="number"
            min={1}
            max={who === "some" ? Math.max(1, chosen.size) : 50}
            value={quorum}
            onChange={(event) => setQuorum(event.target.valueAsNumber || 1)}
          />
        </label>
      )}
    </Dialog>
  );
};
