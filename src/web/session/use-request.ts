import { useEffect, useState } from "react";
import { messageOf } from "../../client/index.ts";

type Requested<Answer> = { answer: Answer | null; problem: string | null };

const nothing = { answer: null, problem: null };

/** The answer of `request`, requested again for each new function; the last answer stays meanwhile. */
export const useRequest = <Answer>(request: () => Promise<Answer>): Requested<Answer> & { again: () => void } => {
  const [state, setState] = useState<Requested<Answer>>(nothing);
  const [tries, setTries] = useState(0);

  // `tries` is a dependency so that `again` requests again.
  useEffect(() => {
    let isWanted = true;
    request().then(
      (answer) => isWanted && setState({ answer, problem: null }),
      (error: unknown) => isWanted && setState(({ answer }) => ({ answer, problem: messageOf(error) })),
    );
    return () => {
      isWanted = false;
    };
  }, [request, tries]);

  const again = (): void => {
    setState(nothing);
    setTries((count) => count + 1);
  };
  return { ...state, again };
};
