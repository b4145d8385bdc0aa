CREATE TABLE visits AS SELECT
    i % 40 AS id,
    ['F', 'M'][1 + i % 40 % 2] AS sex,
    ['north', 'south', 'west'][1 + i % 40 % 3] AS home,
    CASE WHEN i % 11 > 0 THEN ['north', 'south', 'west'][1 + i % 3] END AS region,
    20 + i % 40 AS age,
    i * 37 % 100 * 1000 AS income,
    CASE WHEN i % 9 > 0 THEN i % 4 END AS maybe,
    CASE i % 7 WHEN 1 THEN 'NaN'::DOUBLE WHEN 2 THEN 'inf'::DOUBLE WHEN 3 THEN NULL ELSE i % 9 * 0.5 END AS hours,
    i % 4 * 0.5e0 AS half,
    DATE '2024-01-01' + (i * 5 % 60)::INT AS day,
    TIMESTAMP '2024-01-01 00:30:00' + to_hours(i * 7 % 500) AS seen,
    i % 40 % 4 = 0 AS married,
    1 + i % 5 AS educ,
    (i * 1.25 % 50)::DECIMAL(9, 2) AS fee,
    'U' || i % 6 || '/x' AS page
FROM range(110) AS r(i);
CREATE TABLE homes AS SELECT i AS id, ['north', 'south', 'west'][1 + (i + (i % 5 = 0)::INT) % 3] AS home, i * 7 % 30 AS km,
    ['flat', 'house'][1 + i % 3 % 2] AS kind FROM range(35) AS r(i);
CREATE TABLE trips AS SELECT i % 35 AS id, i AS n FROM range(70) AS r(i);
CREATE TABLE areas AS SELECT * FROM (VALUES ('north', 1), ('north', 2), ('south', 1), ('west', 2)) AS v(home, area);
CREATE TABLE zones AS SELECT * FROM (VALUES ('north', 1, 5), ('south', 2, 7), ('west', 3, 9)) AS v(home, educ, zone);
