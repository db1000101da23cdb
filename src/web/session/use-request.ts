import { useCallback, useEffect, useState } from "react";
import { messageOf } from "../../client/index.ts";

type Requested<Answer> = { answer: Answer | null; problem: string | null };

const nothing = { answer: null, problem: null };

/** The answer to `request`, asked for anew whenever that is another function; the last answer stays meanwhile. */
export const useRequest = <Answer>(request: () => Promise<Answer>): Requested<Answer> & { again: () => void } => {
  const [state, setState] = useState<Requested<Answer>>(nothing);
  const [tries, setTries] = useState(0);

  // Each try asks again.
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

  const again = useCallback(() => {
    setState(nothing);
    setTries((count) => count + 1);
  }, []);
  return { ...state, again };
};
