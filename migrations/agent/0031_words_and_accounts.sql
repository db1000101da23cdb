ALTER TABLE `ledger` ADD `within` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
-- Steps under way are settled in the accounts within the day's row.
UPDATE `ledger` SET `within` = (
  SELECT json_group_object(substr(`of`.`day`, 12), json_object('spent', `of`.`spent`, 'reserved', json(`of`.`reserved`)))
  FROM `ledger` AS `of`
  WHERE substr(`of`.`day`, 1, 11) = `ledger`.`day` || ' ' AND `of`.`day` NOT LIKE '% workspace' AND `of`.`reserved` <> '{}'
) WHERE length(`day`) = 10;--> statement-breakpoint
DELETE FROM `ledger` WHERE length(`day`) > 10 AND `day` NOT LIKE '% workspace' AND `reserved` <> '{}';--> statement-breakpoint
DROP INDEX `runs_of_person`;--> statement-breakpoint
ALTER TABLE `runs` ADD `correction` text;--> statement-breakpoint
CREATE TABLE `redactions_without_rowid` (
	`id` text PRIMARY KEY NOT NULL,
	`words` text,
	`text` text,
	`sender_name` text,
	`space_id` text,
	`message_ids` text,
	`since` integer NOT NULL,
	`place` integer NOT NULL,
	`after` integer NOT NULL,
	`known_from` integer,
	`last_run` integer NOT NULL,
	`rows` integer DEFAULT 0 NOT NULL,
	`is_known` integer NOT NULL,
	`at` integer NOT NULL,
	`said_at` text,
	`kept` text
) WITHOUT ROWID;--> statement-breakpoint
INSERT INTO `redactions_without_rowid` (`id`, `words`, `text`, `sender_name`, `space_id`, `message_ids`, `since`, `place`, `after`, `known_from`, `last_run`, `rows`, `is_known`, `at`) SELECT `id`, `words`, `text`, `sender_name`, `space_id`, `message_ids`, `since`, `place`, `after`, `known_from`, `last_run`, `rows`, `is_known`, `at` FROM `redactions`;--> statement-breakpoint
DROP TABLE `redactions`;--> statement-breakpoint
ALTER TABLE `redactions_without_rowid` RENAME TO `redactions`;
