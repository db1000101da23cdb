CREATE TABLE `token_leases` (
	`day` text NOT NULL,
	`agent_id` text NOT NULL,
	`leased` integer NOT NULL,
	`booked` integer NOT NULL,
	`seq` integer NOT NULL,
	PRIMARY KEY(`day`, `agent_id`)
);
