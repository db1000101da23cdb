CREATE TABLE `journal_names` (
	`part` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL
);
