import { createContext } from "react";

/** The names of the spaces that the person of this page is in, by their ids. */
export const OwnSpacesContext = createContext<ReadonlyMap<string, string>>(new Map());
