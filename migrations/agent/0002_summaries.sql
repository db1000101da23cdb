CREATE TABLE `summaries` (
	`subject` text PRIMARY KEY NOT NULL,
	`text` text,
	`base` integer NOT NULL,
	`up_to` integer NOT NULL,
	`wanted` integer NOT NULL,
	`try_at` integer,
	`failures` integer NOT NULL,
	`last_error` text,
	`updated_at` integer NOT NULL
);
