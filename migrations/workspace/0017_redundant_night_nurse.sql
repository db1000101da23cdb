CREATE TABLE `usage` (
	`day` text NOT NULL,
	`reporter` text NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`tokens` integer DEFAULT 0 NOT NULL,
	`runs` integer DEFAULT 0 NOT NULL,
	`messages` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `reporter`, `kind`, `subject`)
);
