CREATE TABLE `out_of_budget` (
	`person` text PRIMARY KEY NOT NULL,
	`until` integer NOT NULL,
	`spaces` text NOT NULL
);
