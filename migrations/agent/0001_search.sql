CREATE TABLE `archival` (
	`ordinal` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`content` text NOT NULL,
	`metadata` text NOT NULL,
	`source` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `archival_id_unique` ON `archival` (`id`);--> statement-breakpoint
CREATE TABLE `search_entries` (
	`id` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`ref` text NOT NULL,
	`part` integer NOT NULL,
	`version` integer,
	`role` text,
	`space_id` text,
	`message_id` text,
	`author_id` text,
	`author_name` text,
	`at` integer NOT NULL,
	`head` text NOT NULL,
	`text` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `search_entries_ref` ON `search_entries` (`ref`) WHERE type in ('block', 'archival');--> statement-breakpoint
CREATE TABLE `search_sources` (
	`number` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`cursor` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `search_sources_name_unique` ON `search_sources` (`name`);--> statement-breakpoint
CREATE TABLE `search_state` (
	`id` integer PRIMARY KEY NOT NULL,
	`embedder_id` text,
	`embedded_up_to` integer NOT NULL,
	`entries` text NOT NULL,
	`embedded` text NOT NULL,
	`used_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `search_vectors` (
	`id` integer PRIMARY KEY NOT NULL,
	`passages` integer NOT NULL,
	`packed` blob NOT NULL
);
--> statement-breakpoint
CREATE VIRTUAL TABLE `search_words` USING fts5(`head`, `text`, content='search_entries', content_rowid='id', tokenize='porter unicode61');
--> statement-breakpoint
CREATE TRIGGER `search_entries_added` AFTER INSERT ON `search_entries` BEGIN
	INSERT INTO `search_words` (`rowid`, `head`, `text`) VALUES (new.`id`, new.`head`, new.`text`);
END;
--> statement-breakpoint
CREATE TRIGGER `search_entries_removed` AFTER DELETE ON `search_entries` BEGIN
	INSERT INTO `search_words` (`search_words`, `rowid`, `head`, `text`) VALUES ('delete', old.`id`, old.`head`, old.`text`);
END;
