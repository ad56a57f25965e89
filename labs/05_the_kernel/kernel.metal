// One threadgroup for each head, with GROUPS SIMD groups of 32 lanes; a head has 64 numbers.
const int head = threadgroup_position_in_grid.x;
const int group = simdgroup_index_in_threadgroup;
const int lane = thread_index_in_simdgroup;
const int kv_head = head / (HEADS / KV_HEADS);

float q[2];
for (int i = 0; i < 2; ++i) {
    q[i] = queries[head * 64 + lane + 32 * i] / 8;  // 8 is the square root of the head size
}
float highest = -INFINITY;
float total = 0;
float sum[2] = {0, 0};

for (int token = group; token < num_tokens[0]; token += GROUPS) {
//// inner_loop
}

threadgroup float highest_of[GROUPS];
threadgroup float total_of[GROUPS];
threadgroup float sum_of[GROUPS * 64];
if (lane == 0) {
    highest_of[group] = highest;
    total_of[group] = total;
}
for (int i = 0; i < 2; ++i) {
    sum_of[group * 64 + lane + 32 * i] = sum[i];
}
float answer[2];
//// merge_groups
if (group == 0) {
    for (int i = 0; i < 2; ++i) {
        out[head * 64 + lane + 32 * i] = answer[i];
    }
}
