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
	`at` integer NOT NULL
) WITHOUT ROWID;--> statement-breakpoint
INSERT INTO `redactions_without_rowid` SELECT `id`, `words`, `text`, `sender_name`, `space_id`, `message_ids`, `since`, `place`, `after`, `known_from`, `last_run`, `rows`, `is_known`, `at` FROM `redactions`;--> statement-breakpoint
DROP TABLE `redactions`;--> statement-breakpoint
ALTER TABLE `redactions_without_rowid` RENAME TO `redactions`;
