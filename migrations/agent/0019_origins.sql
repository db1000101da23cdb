-- What an origin told of another space, its words and names, goes: a reference stays. `text` was the default, and so no choice.
UPDATE `inbox` SET `data` = json_patch(`data`, json_object('delivered', json_object('message', json_object('origin', json_object('spaceId', (`data` -> '$.delivered.message.origin') ->> '$.sourceSpaceId', 'sourceSpaceId', NULL,
  'sourceSpaceName', NULL, 'sourceSenderName', NULL, 'sourceEvent', NULL, 'sourceName', NULL)))))
WHERE `data` LIKE '%"origin":{"source%' AND `data` -> '$.delivered.message.origin' IS NOT NULL;--> statement-breakpoint
UPDATE `overheard` SET `data` = json_patch(`data`, json_object('delivered', json_object('message', json_object('origin', json_object('spaceId', (`data` -> '$.delivered.message.origin') ->> '$.sourceSpaceId', 'sourceSpaceId', NULL,
  'sourceSpaceName', NULL, 'sourceSenderName', NULL, 'sourceEvent', NULL, 'sourceName', NULL)))))
WHERE `data` LIKE '%"origin":{"source%' AND `data` -> '$.delivered.message.origin' IS NOT NULL;--> statement-breakpoint
UPDATE `calls` SET `origin` = json_patch(`origin`, json_object('spaceId', `origin` ->> '$.sourceSpaceId', 'sourceSpaceId', NULL,
  'sourceSpaceName', NULL, 'sourceSenderName', NULL, 'sourceEvent', NULL, 'sourceName', NULL))
WHERE `origin` IS NOT NULL;--> statement-breakpoint
UPDATE `spaces` SET `snapshot` = json_set(`snapshot`, '$.shareOrigin', 'reference') WHERE `snapshot` ->> '$.shareOrigin' = 'text';
