/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/relief_json.h"

static void
write_relief(LhJsonWriter *w, const LhRelief *relief)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "options", relief->options);
    lh_jsonw_uint(w, "peak_bytes", relief->peak_bytes);
    lh_jsonw_bool(w, "fits", relief->fits);
    lh_jsonw_object_end(w);
}

void
lh_reliefs_json(LhJsonWriter *w, const LhReliefs *reliefs)
{
    if (reliefs == NULL) {
        lh_jsonw_string(w, "relief", NULL);
        return;
    }
    lh_jsonw_object_begin(w, "relief");
    lh_jsonw_uint(w, "peak_bytes", reliefs->peak_bytes);
    lh_jsonw_uint(w, "limit_bytes", reliefs->limit_bytes);
    lh_jsonw_string(w, "largest", lh_category_names[reliefs->category]);
    lh_jsonw_uint(w, "largest_bytes", reliefs->category_bytes);
    lh_jsonw_array_begin(w, "changes");
    for (guint i = 0; i < reliefs->tried->len; i++)
        write_relief(w, g_ptr_array_index(reliefs->tried, i));
    lh_jsonw_array_end(w);
    if (reliefs->fitting_length > 0)
        lh_jsonw_uint(w, "fitting_seq_length", reliefs->fitting_length);
    else
        lh_jsonw_string(w, "fitting_seq_length", NULL);
    lh_jsonw_object_end(w);
}
