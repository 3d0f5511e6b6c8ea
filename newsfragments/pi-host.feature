A worker runs its own `pi --mode rpc`: nothing you send is lost between two prompts, a stop ends everything Pi started, and a scripted model lets you try it all without an account.
