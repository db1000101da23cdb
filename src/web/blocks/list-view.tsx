import { fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { IconButton } from "../look/icon.tsx";
import { AddLine } from "./add-line.tsx";
import { InlineEdit } from "./inline-edit.tsx";
import { inWords, itemFrom, shapeOf, withWords } from "./item-shape.ts";
import { useKeyedItems } from "./keyed-items.ts";
import type { Part } from "./part.ts";

type ListPart = Part<Extract<PlainSchema, { type: "list" }>>;

export const ListView = ({ schema, value, may, name, onEdit }: ListPart) => {
  const items = itemsOf(value);
  const { rows, first } = useKeyedItems(items);
  const add = (words: string): void => {
    const item = itemFrom(words, schema, items);
    if (item !== undefined) onEdit({ op: "push_item", item });
  };
  return (
    <>
      {items.length === 0 && <p className="soft">Nothing on it yet.</p>}
      <ol className="block-items" aria-label={name}>
        {rows.map(({ key, item }, index) => (
          <ListItem
            key={key}
            item={item}
            place={index + 1}
            isFresh={key > first}
            may={may}
            onSet={(next) => onEdit({ op: "set_item", index, item: next })}
            onDelete={() => onEdit({ op: "delete_item", index })}
          />
        ))}
      </ol>
      {may.append && itemFrom("x", schema, items) !== undefined && <AddLine label={`Add to ${name}`} onAdd={add} />}
    </>
  );
};

type ListItemProps = {
  item: Json;
  place: number;
  isFresh: boolean;
  may: ListPart["may"];
  onSet: (item: Json) => void;
  onDelete: () => void;
};

const ListItem = ({ item, place, isFresh, may, onSet, onDelete }: ListItemProps) => {
  const { words, wordsIn, isDone, rest } = shapeOf(item);
  return (
    <li className="block-item" data-fresh={isFresh}>
      {isDone === undefined ? (
        <span className="block-item-place small soft numeric" aria-hidden="true">
          {place}
        </span>
      ) : (
        <input
          type="checkbox"
          checked={isDone}
          disabled={!may.change}
          aria-label={words}
          onChange={(event) => onSet({ ...fieldsOf(item), done: event.target.checked })}
        />
      )}
      <span className="block-item-words words">
        {may.change && wordsIn !== undefined ? (
          <InlineEdit
            label={`Item ${place}`}
            words={words}
            isStruck={isDone === true}
            onSave={(text) => onSet(withWords(item, text))}
          />
        ) : (
          <span className="block-plain" data-struck={isDone === true}>
            {words}
          </span>
        )}
        {rest.length > 0 && (
          <span className="block-item-rest wrap small soft">
            {rest.map(([field, held]) => (
              <span key={field}>
                {field}: {inWords(held)}
              </span>
            ))}
          </span>
        )}
      </span>
      {may.remove && <IconButton icon="bin" size={17} label={`Delete ${words}`} onClick={onDelete} />}
    </li>
  );
};
