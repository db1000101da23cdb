CREATE TABLE `redactions` (
	`id` text PRIMARY KEY NOT NULL,
	`words` text,
	`text` text,
	`sender_name` text,
	`space_id` text,
	`since` integer NOT NULL,
	`place` integer NOT NULL,
	`after` integer NOT NULL,
	`known_from` integer,
	`last_run` integer NOT NULL,
	`is_known` integer NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `search_words` (`search_words`, `rank`) VALUES ('secure-delete', 1);--> statement-breakpoint
INSERT INTO `search_words` (`search_words`) VALUES ('optimize');
