-- The kernel ranking inside SQLite: the columns of nsys stats without the median, which SQLite lacks.
-- Names are joined to the groups, not to the rows: the fastest way to write it.
.mode csv
.headers on
WITH per_name AS (
    SELECT demangledName AS id,
           count(*) AS n,
           sum("end" - start) AS total,
           avg("end" - start) AS mean,
           min("end" - start) AS least,
           max("end" - start) AS most,
           sum(1.0 * ("end" - start) * ("end" - start)) AS squares
    FROM CUPTI_ACTIVITY_KIND_KERNEL
    GROUP BY demangledName
)
SELECT round(100.0 * total / sum(total) OVER (), 1) AS "Time (%)",
       total AS "Total Time (ns)",
       n AS "Instances",
       round(mean, 1) AS "Avg (ns)",
       least AS "Min (ns)",
       most AS "Max (ns)",
       round(sqrt(max(squares - n * mean * mean, 0.0) / max(n - 1, 1)), 1) AS "StdDev (ns)",
       value AS "Name"
FROM per_name
JOIN StringIds ON StringIds.id = per_name.id
ORDER BY total DESC
LIMIT 20;
