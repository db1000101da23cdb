import { useCallback, useEffect, useState } from "react";
import { allItems, type Entity, type Erasure } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { LinkButton } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import { full, Time } from "../look/time.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { numberText } from "./limits.tsx";

type Person = Pick<Entity, "id" | "name">;

/** Says what is erased with a person, and what nobody can know of. */
export const EraseQuestion = ({ name }: { name: string }) => (
  <>
    <p>
      Gone for good: the messages of {name}, their answers, and their name, here and in all that agents keep. Others see
      that messages were deleted. Whoever is signed in as {name} is signed out.
    </p>
    <p>What cannot be known, and may be left:</p>
    <ul className="points">
      <li>what models wrote in words of their own, and what others said of {name} in theirs</li>
      <li>blocks and archival entries that agents wrote</li>
      <li>what was sent to models, tools, webhooks and people's devices, or exported</li>
    </ul>
    <p>It may take minutes, and goes on by itself. It cannot be taken back.</p>
  </>
);

/** How far an erasure has come, and once it is over what it did. */
export const ErasureReport = ({ erasure }: { erasure: Erasure }) => {
  const { objects, left, rows, requests, waiting, unknown, completedAt } = erasure;
  const isOver = completedAt !== undefined;
  return (
    <>
      <p role="status">
        {isOver
          ? `Done, ${full(completedAt)}: all that may have held something have let it go.`
          : "It goes on by itself."}
      </p>
      <p className="numeric">
        {numberText(objects)} objects visited, {numberText(left)} left{waiting[0] && ` (next: ${waiting[0]})`};{" "}
        {numberText(rows)} rows changed, by {numberText(requests)} requests.
      </p>
      <p>What cannot be known, and may be left:</p>
      <ul className="points">
        {unknown.map((words) => (
          <li key={words}>{words}</li>
        ))}
      </ul>
    </>
  );
};

const lookAgainMs = 1000;

/** Looks how far it has come until it is done. One that cannot be asked is asked again. */
const useErasure = (begun: Erasure): Erasure => {
  const { client } = useSignedIn();
  const [seen, setSeen] = useState(begun);
  useEffect(() => {
    if (seen.state === "done") return;
    const again = (): void => setSeen({ ...seen });
    const timer = setTimeout(() => client.getErasure(seen.id).then(setSeen, again), lookAgainMs);
    return () => clearTimeout(timer);
  }, [client, seen]);
  return seen;
};

const ReportDialog = ({ of, begun, onClose }: { of: string; begun: Erasure; onClose: () => void }) => {
  const erasure = useErasure(begun);
  const isDone = erasure.state === "done";
  const labels = { title: `${isDone ? "Erased" : "Erasing"}: ${of}`, cancelLabel: "Close", submitLabel: "Done" };
  return (
    <Dialog {...labels} isReady={isDone} onClose={onClose} onSubmit={async () => onClose()}>
      <ErasureReport erasure={erasure} />
    </Dialog>
  );
};

const EraseDialog = ({ person, onClose }: { person: Person; onClose: () => void }) => {
  const { client } = useSignedIn();
  const [begun, setBegun] = useState<Erasure | null>(null);
  const begin = async (): Promise<void> => setBegun(await client.erase({ kind: "person", id: person.id }));
  if (begun) return <ReportDialog of={person.name} {...{ begun, onClose }} />;
  const labels = { title: `Erase ${person.name}?`, cancelLabel: "Keep them", submitLabel: "Erase for good" };
  return (
    <Dialog {...labels} isDangerous onClose={onClose} onSubmit={begin}>
      <EraseQuestion name={person.name} />
    </Dialog>
  );
};

/** The people and services of the workspace, each to be erased, and what was erased before. */
export const People = () => {
  const { client, entityId } = useSignedIn();
  const people = useRequest(
    useCallback(() => allItems((page) => client.listEntities({ limit: 100, ...page })), [client]),
  );
  const erasures = useRequest(useCallback(() => client.listErasures({ limit: 20 }), [client]));
  const [asked, setAsked] = useState<Person | Erasure | null>(null);
  const [sought, setSought] = useState("");
  const close = (): void => {
    setAsked(null);
    people.again();
    erasures.again();
  };
  const isSought = ({ name }: Person): boolean => name.toLowerCase().includes(sought.trim().toLowerCase());
  const shown = people.answer?.filter((one) => one.type !== "agent" && one.id !== entityId && isSought(one)) ?? [];
  const before = erasures.answer?.items ?? [];
  const problem = people.problem ?? erasures.problem;
  return (
    <>
      <input
        className="input"
        type="search"
        aria-label="Find a person or a service"
        placeholder="Find by name"
        value={sought}
        onChange={({ target }) => setSought(target.value)}
      />
      {problem && <p className="small danger">{problem}</p>}
      {people.answer && shown.length === 0 && <p className="small soft">Nobody is found.</p>}
      <ul className="people">
        {shown.map((person) => (
          <li key={person.id} className="row">
            <Avatar {...person} size={28} />
            <span className="row grow">
              <span className="ellipsis">{person.name}</span>
              <TypeBadge type={person.type} />
            </span>
            <LinkButton onClick={() => setAsked(person)}>
              Erase<span className="visually-hidden"> {person.name}</span>
            </LinkButton>
          </li>
        ))}
      </ul>
      {before.length > 0 && (
        <>
          <h3 className="small">Erased so far</h3>
          <ul className="people">
            {before.map((erasure) => (
              <li key={erasure.id} className="row">
                <span className="words grow">
                  <span>
                    A {erasure.kind}, <Time iso={erasure.createdAt} />
                  </span>
                  <code className="tiny soft ellipsis">{erasure.id}</code>
                </span>
                <LinkButton onClick={() => setAsked(erasure)}>
                  {erasure.state === "done" ? "Report" : "Progress"}
                </LinkButton>
              </li>
            ))}
          </ul>
        </>
      )}
      {asked &&
        ("kind" in asked ? (
          <ReportDialog of={`a ${asked.kind}`} begun={asked} onClose={close} />
        ) : (
          <EraseDialog person={asked} onClose={close} />
        ))}
    </>
  );
};
